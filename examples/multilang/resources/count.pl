# A bolt in Perl: counts words in its own memory. Perl's own modules are enough.
use strict;
use warnings;
use JSON::PP;

$| = 1;
my $json = JSON::PP->new->utf8;

# --- the protocol: JSON, and a line "end" behind each message ---

sub receive {
    my $text = '';
    while (my $line = <STDIN>) {
        return $json->decode($text) if $line =~ /^end\r?$/;
        $text .= $line;
    }
    exit 0;
}

sub send_message {
    print $json->encode({@_}), "\nend\n";
}

my $hello = receive();
open(my $file, '>', "$hello->{pidDir}/$$") or die "no pid file: $!";
close $file;
send_message(pid => $$ + 0);

# --- the bolt ---

my %counts;
while (1) {
    my $tuple = receive();
    next if ref $tuple eq 'ARRAY';    # task ids, which nobody here asks for
    if ($tuple->{stream} eq '__heartbeat') {
        send_message(command => 'sync');
        next;
    }
    my $word = $tuple->{tuple}[0];
    $counts{$word}++;
    send_message(
        command       => 'emit',
        tuple         => [$word, $counts{$word}],
        anchors       => [$tuple->{id}],
        need_task_ids => JSON::PP::false,
    );
    send_message(command => 'ack', id => $tuple->{id});
}
