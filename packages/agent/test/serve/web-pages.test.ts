import type { IncomingMessage } from 'node:http';
import { hostname } from 'node:os';
import test from 'ava';
import { alwaysAllow } from '../../src/serve/access/access-reviews.ts';
import { createGate, openGate } from '../../src/serve/access/gate.ts';
import { HttpProblem } from '../../src/serve/http/request.ts';

const here = { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' };
const elsewhere = { remoteAddress: '192.0.2.8', localAddress: '192.0.2.7' };
const request = (headers: IncomingMessage['headers'], socket: object = here) =>
  ({ method: 'GET', url: '/pods', headers, socket }) as unknown as IncomingMessage;

const refused: readonly IncomingMessage['headers'][] = [
  { host: 'rebound.evil.example:10255' },
  { host: '127.0.0.1:10255', origin: 'https://evil.example' },
  { host: '127.0.0.1:10255', origin: 'null' },
  { host: '127.0.0.1:10255', 'sec-fetch-site': 'cross-site' },
  { host: 'localhost:10255', 'sec-fetch-site': 'same-site' },
];
for (const headers of refused) {
  test(`a port without authentication rejects requests with ${JSON.stringify(headers)}`, async (t) => {
    const problem = await t.throwsAsync(openGate('n1')(request(headers)), { instanceOf: HttpProblem });
    t.is((problem as HttpProblem).status, 403);
    const known = createGate({
      identify: async () => ({ name: 'ann', groups: [], anonymous: false }),
      authorize: alwaysAllow,
      nodeName: 'n1',
    });
    t.is((await known(request(headers))).caller.name, 'ann', 'who is known is no page');
  });
}

test('requests of this machine must have one of its names or addresses as host, others may have any host', async (t) => {
  const gate = openGate('n1');
  const hosts = [
    'localhost:10255',
    '127.0.0.1',
    '[::1]:10255',
    '192.0.2.7:10255',
    '[fd00::7]:10255',
    'n1:10255',
    hostname(),
  ];
  for (const host of hosts) await t.notThrowsAsync(gate(request({ host })), host);
  await t.notThrowsAsync(gate(request({})), 'HTTP/1.0');
  await t.notThrowsAsync(gate(request({ host: 'node-1.example:10255' }, elsewhere)));
  await t.throwsAsync(gate(request({ host: 'node-1.example:10255', origin: 'http://evil.example' }, elsewhere)));
});
