#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// WebSocket echo on npm's `ws`, as Debian packages it (node-ws).
'use strict';

module.paths.push('/usr/share/nodejs');
const { WebSocketServer } = require('ws');

if (process.argv.at(-1) === '--info') {
  console.log(`ws ${require('ws/package.json').version} on node ${process.version}`);
} else {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
  server.on('listening', () => console.log(server.address().port));
  server.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
    socket.on('error', () => {});
  });
}
