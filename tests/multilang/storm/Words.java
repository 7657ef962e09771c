import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/**
 * Counts words on a real Storm whose bolts are child processes; prints the counts and the rate.
 *
 * <p>Arguments: a file of sentences, how many of them to emit in turns, and the commands of the
 * splitting bolt and, behind "--", of the counting bolt. Without the second one Storm counts itself.
 */
public class Words {
    static final AtomicInteger ACKED = new AtomicInteger();
    static final Map<String, Integer> COUNTS = new ConcurrentHashMap<>();

    /** Emits each sentence in turns, and again if it fails. */
    public static class Sentences extends BaseRichSpout {
        private final List<String> sentences;
        private final int limit;
        private int next;
        private transient SpoutOutputCollector collector;

        Sentences(List<String> sentences, int limit) {
            this.sentences = sentences;
            this.limit = limit;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void nextTuple() {
            if (next < limit) {
                emit(next++);
            }
        }

        private void emit(int number) {
            collector.emit(new Values(sentences.get(number % sentences.size())), number);
        }

        @Override
        public void ack(Object id) {
            ACKED.incrementAndGet();
        }

        @Override
        public void fail(Object id) {
            emit((Integer) id);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("sentence"));
        }
    }

    /** A child. */
    public static class Child extends ShellBolt implements IRichBolt {
        private final String[] fields;

        Child(List<String> command, String... fields) {
            super(command.toArray(new String[0]));
            this.fields = fields;
            changeChildCWD(false);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields(fields));
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }
    }

    /** Counts words in this process, or keeps the counts that a child has told. */
    public static class Count extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            if (tuple.size() == 1) {
                COUNTS.merge(tuple.getString(0), 1, Integer::sum);
            } else {
                COUNTS.merge(tuple.getString(0), ((Number) tuple.getValue(1)).intValue(), Math::max);
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
        }
    }

    /** See above. */
    public static void main(String[] args) throws Exception {
        List<String> sentences = new ArrayList<>(Files.readAllLines(Path.of(args[0])));
        int limit = Integer.parseInt(args[1]);
        List<String> commands = Arrays.asList(args).subList(2, args.length);
        int cut = commands.indexOf("--");
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("sentences", new Sentences(sentences, limit));
        List<String> split = commands.subList(0, cut < 0 ? commands.size() : cut);
        builder.setBolt("split", new Child(split, "word"), 2).shuffleGrouping("sentences");
        if (cut < 0) {
            builder.setBolt("count", new Count()).fieldsGrouping("split", new Fields("word"));
        } else {
            Child count = new Child(commands.subList(cut + 1, commands.size()), "word", "n");
            builder.setBolt("count", count, 2).fieldsGrouping("split", new Fields("word"));
            builder.setBolt("last", new Count()).globalGrouping("count");
        }
        Config config = new Config();
        config.setMaxSpoutPending(5000);
        new LocalCluster().submitTopology("words", config, builder.createTopology());
        while (ACKED.get() < limit / 5) {
            Thread.sleep(1);
        }
        int warm = ACKED.get();
        long began = System.nanoTime();
        while (ACKED.get() < limit) {
            Thread.sleep(1);
        }
        double rate = (limit - warm) / ((System.nanoTime() - began) / 1e9);
        StringBuilder out = new StringBuilder();
        for (Map.Entry<String, Integer> entry : new TreeMap<>(COUNTS).entrySet()) {
            out.append(entry.getKey()).append('=').append(entry.getValue()).append(' ');
        }
        System.out.println("COUNTS " + out.toString().trim());
        System.out.println("RATE " + rate);
        Runtime.getRuntime().halt(0);
    }
}
