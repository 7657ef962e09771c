# A bolt in Ruby: makes words small, and leaves those out that hold a digit.
require 'json'

$stdout.sync = true

# --- the protocol: JSON, and a line "end" behind each message ---

def read
  lines = []
  while (line = $stdin.gets)
    return JSON.parse(lines.join) if line.chomp == 'end'

    lines << line
  end
  exit
end

def send_message(message)
  $stdout.write("#{JSON.generate(message)}\nend\n")
end

hello = read
File.write(File.join(hello['pidDir'], Process.pid.to_s), '')
send_message(pid: Process.pid)

# --- the bolt ---

loop do
  tuple = read
  next if tuple.is_a?(Array) # task ids, which nobody here asks for

  if tuple['stream'] == '__heartbeat'
    send_message(command: 'sync')
    next
  end
  word = tuple['tuple'][0]
  if word =~ /\d/
    send_message(command: 'log', msg: "no word: #{word}", level: 3)
  else
    send_message(
      command: 'emit', tuple: [word.downcase], anchors: [tuple['id']], need_task_ids: false
    )
  end
  send_message(command: 'ack', id: tuple['id'])
end
