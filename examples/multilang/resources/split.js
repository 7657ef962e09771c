// A bolt in JavaScript: cuts a sentence into words. Node.js alone, no package is needed.
'use strict';

const fs = require('fs');
const path = require('path');

// --- the protocol: JSON, and a line "end" behind each message ---

function send(message) {
  process.stdout.write(JSON.stringify(message) + '\nend\n');
}

let lines = [];
require('readline').createInterface({input: process.stdin}).on('line', (line) => {
  if (line !== 'end') {
    lines.push(line);
    return;
  }
  const message = JSON.parse(lines.join('\n'));
  lines = [];
  if (message.pidDir) {
    fs.writeFileSync(path.join(message.pidDir, String(process.pid)), '');
    send({pid: process.pid});
  } else if (message.stream === '__heartbeat') {
    send({command: 'sync'});
  } else if (!Array.isArray(message)) { // a list would be task ids, which nobody here asks for
    execute(message);
  }
});

// --- the bolt ---

function execute(tuple) {
  for (const word of tuple.tuple[0].split(/\s+/).filter(Boolean)) {
    send({command: 'emit', tuple: [word], anchors: [tuple.id], need_task_ids: false});
  }
  send({command: 'ack', id: tuple.id});
}
