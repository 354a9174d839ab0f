import type { IncomingMessage } from 'node:http';
import test from 'ava';
import { requireKnownCaller } from '../../../src/serve/access/known-caller.ts';
import { HttpProblem } from '../../../src/serve/http/request.ts';
import { execPath, openStreamServer } from '../../support/stream-server.ts';

const caller = (anonymous: boolean) => ({ name: anonymous ? 'system:anonymous' : 'ann', groups: [], anonymous });
const from = (remoteAddress: string, localAddress: string, headers: IncomingMessage['headers'] = {}) =>
  ({ socket: { remoteAddress, localAddress }, headers }) as IncomingMessage;

for (const [remote, local, isHere] of [
  ['127.0.0.1', '127.0.0.1', true],
  ['::1', '::1', true],
  ['::ffff:127.3.2.1', '::ffff:127.0.0.1', true],
  ['192.0.2.7', '192.0.2.7', true],
  ['192.0.2.8', '192.0.2.7', false],
  ['127.0.0.1.example', '192.0.2.7', false],
  ['2001:db8::1', '2001:db8::2', false],
] as const) {
  test(`an anonymous client at ${remote}, connected to ${local}, ${isHere ? 'may' : 'may not'} run commands`, (t) => {
    const ask =
      (anonymous: boolean, headers = {}) =>
      () =>
        requireKnownCaller({ caller: caller(anonymous), incoming: from(remote, local, headers) }, 'commands are run');
    if (isHere) t.notThrows(ask(true));
    else
      t.throws(ask(true), {
        instanceOf: HttpProblem,
        message: /^Forbidden \(user=system:anonymous\): commands are run only for /,
      });
    t.throws(ask(true, { origin: 'https://page.example' }), { instanceOf: HttpProblem }, 'a web page');
    t.notThrows(ask(false), 'who is known may be anywhere');
  });
}

test('a web page cannot run commands, attach, or forward ports with the credentials of its viewer', async (t) => {
  const server = await openStreamServer(t, {});
  const headers = { Origin: 'https://page.example' };
  for (const path of [execPath(['ls'], 'output'), '/attach/default/web/main?output=1', '/portForward/default/web']) {
    t.is((await server.ask(path, { headers })).status, 403, path);
  }
  t.is((await server.ask('/run/default/web/main?cmd=ls', { method: 'POST', headers })).status, 403);
});
