// Components on storm.js, the adapter that Apache Storm publishes.
const storm = require('./storm');

class Sentences extends storm.Spout {
  initialize(conf, context, done) { this.left = 100; this.ids = []; done(); }
  activate(done) { done(); }
  deactivate(done) { done(); }
  nextTuple(done) {
    if (this.left > 0) {
      this.left -= 1;
      this.emit({tuple: ['the quick brown fox'], id: this.left}, () => done());
    } else { done(); }
  }
  ack(id, done) { this.ids.push(id); done(); }
  fail(id, done) { done(); }
}

class Split extends storm.BasicBolt {
  process(tup, done) {
    tup.values[0].split(' ').forEach((word) =>
      this.emit({tuple: [word], anchorTupleId: tup.id}, () => {}));
    done();
  }
}

// Works on in the background: answers heartbeats at once and acks later, in any order.
class SlowSplit extends storm.BasicBolt {
  process(tup, done) {
    setTimeout(() => {
      tup.values[0].split(' ').forEach((word) =>
        this.emit({tuple: [word], anchorTupleId: tup.id}, () => {}));
      done();
    }, Math.random() * 300);
  }
}

new ({Sentences, Split, SlowSplit}[process.argv[2]])().run();
