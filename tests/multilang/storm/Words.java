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

/** Counts words on a real Storm whose splitting bolt is a child process: prints acks and counts. */
public class Words {
    static final AtomicInteger ACKED = new AtomicInteger();
    static final Map<String, Integer> COUNTS = new ConcurrentHashMap<>();
    static final String[] SENTENCES = {"to be or not to be", "that is the question", "ünïcode too"};

    /** Emits each sentence in turns, and again if it fails. */
    public static class Sentences extends BaseRichSpout {
        private final int limit;
        private int next;
        private transient SpoutOutputCollector collector;

        Sentences(int limit) {
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
            collector.emit(new Values(SENTENCES[number % SENTENCES.length]), number);
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

    /** The child. */
    public static class Split extends ShellBolt implements IRichBolt {
        Split(String[] command) {
            super(command);
            changeChildCWD(false);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }
    }

    /** Counts in this process. */
    public static class Count extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            COUNTS.merge(tuple.getString(0), 1, Integer::sum);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
        }
    }

    /** The arguments: how many sentences, then the child's command. */
    public static void main(String[] args) throws Exception {
        int limit = Integer.parseInt(args[0]);
        String[] command = java.util.Arrays.copyOfRange(args, 1, args.length);
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("sentences", new Sentences(limit));
        builder.setBolt("split", new Split(command), 2).shuffleGrouping("sentences");
        builder.setBolt("count", new Count()).fieldsGrouping("split", new Fields("word"));
        Config config = new Config();
        config.setMaxSpoutPending(1000);
        LocalCluster cluster = new LocalCluster();
        cluster.submitTopology("words", config, builder.createTopology());
        long began = System.nanoTime();
        while (ACKED.get() < limit) {
            Thread.sleep(20);
        }
        double secs = (System.nanoTime() - began) / 1e9;
        StringBuilder out = new StringBuilder();
        for (Map.Entry<String, Integer> entry : new TreeMap<>(COUNTS).entrySet()) {
            out.append(entry.getKey()).append('=').append(entry.getValue()).append(' ');
        }
        System.out.println("COUNTS " + out.toString().trim());
        System.out.println("SECS " + secs);
        Runtime.getRuntime().halt(0);
    }
}
