import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { eventually } from '@keelson/testing';
import anyTest, { type TestFn } from 'ava';
import { findKubectl } from '../../src/kubectl.ts';
import { createObject, type NodeOfUp, nodeName, runShells, startNodeOfUp } from '../../src/node-of-up.ts';

const waitMs = 60_000;
const command = process.platform === 'linux' ? findKubectl() : undefined;
const test = anyTest as TestFn<NodeOfUp>;
const withKubectl = command === undefined ? test.skip : test;
let up: NodeOfUp | undefined;

/** The response of the agent to a client with a certificate of the authority of the server, or without one. */
async function askAgent(
  { kubectl, folder }: NodeOfUp,
  path: string,
  certificate?: string,
): Promise<number | undefined> {
  const port = Number(
    await kubectl.run(['get', 'node', nodeName, '-o', 'jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}']),
  );
  const file = (ending: string) => readFile(join(folder, 'data', `${certificate}.${ending}`));
  const shown = certificate === undefined ? {} : { cert: await file('crt'), key: await file('key') };
  const sent = request({ host: '127.0.0.1', port, path, rejectUnauthorized: false, agent: false, ...shown });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

test.before(async (t) => {
  t.timeout(180_000);
  if (command !== undefined) up = await startNodeOfUp(command);
});
test.beforeEach((t) => {
  if (up !== undefined) t.context = up;
});
test.after.always(() => up?.stop());

withKubectl(
  'kubectl logs prints the log of a container: all lines, the last lines, one of several, by label',
  async (t) => {
    t.timeout(180_000);
    const { kubectl } = t.context;
    const shells = [
      { name: 'main', script: 'echo one; echo two; echo three' },
      { name: 'side', script: 'echo beside' },
    ];
    await runShells(kubectl, 'talker', shells, { restartPolicy: 'Never' });
    await kubectl.run(['wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/talker', '--timeout=50s']);
    t.is(await kubectl.run(['logs', 'talker', '-c', 'main']), 'one\ntwo\nthree\n');
    t.is(await kubectl.run(['logs', 'talker', '-c', 'main', '--tail=1']), 'three\n');
    t.is(await kubectl.run(['logs', 'talker', '-c', 'main', '--limit-bytes=5']), 'one\nt');
    t.is(await kubectl.run(['logs', 'talker', 'side']), 'beside\n');
    t.regex(await kubectl.run(['logs', 'talker', 'side', '--timestamps']), /^\d{4}-\d\d-\d\dT[\d:.]+Z beside\n$/);
    const labelled = await kubectl.run(['logs', '-l', 'app=talker', '--all-containers', '--prefix']);
    t.deepEqual(labelled.trimEnd().split('\n').sort(), [
      '[pod/talker/main] one',
      '[pod/talker/main] three',
      '[pod/talker/main] two',
      '[pod/talker/side] beside',
    ]);

    const raw = await kubectl.try(['get', '--raw', '/api/v1/namespaces/default/pods/talker/log']);
    t.regex(raw.stderr, /BadRequest.*a container name must be specified for pod talker, choose one of: \[main side\]/);
    t.regex((await kubectl.try(['logs', 'talker', '-c', 'none'])).stderr, /container none is not valid for pod talker/);
    t.regex(
      (await kubectl.try(['logs', 'talker', '-c', 'main', '-p'])).stderr,
      /previous terminated container "main".* not found/,
    );
    t.regex((await kubectl.try(['logs', 'nobody'])).stderr, /pods "nobody" not found/);
    await kubectl.run(['run', 'imageless', '--image=nowhere.test/none:1', '--image-pull-policy=Never']);
    const waiting = '--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ErrImageNeverPull';
    await kubectl.run(['wait', waiting, 'pod/imageless', '--timeout=50s']);
    t.regex((await kubectl.try(['logs', 'imageless'])).stderr, /"imageless" is waiting to start: ErrImageNeverPull/);
    const negative = await kubectl.try([
      'get',
      '--raw',
      '/api/v1/namespaces/default/pods/talker/log?container=main&tailLines=-2',
    ]);
    t.regex(negative.stderr, /tailLines: Invalid value/);
  },
);

withKubectl('kubectl logs -f shows lines as they are written and ends with the container', async (t) => {
  t.timeout(180_000);
  const { kubectl, folder } = t.context;
  const [go, end] = [join(folder, 'go'), join(folder, 'end')];
  const waitFor = (file: string) => `until [ -e ${file} ]; do sleep 0.05; done`;
  const script = `echo first; ${waitFor(go)}; echo second; ${waitFor(end)}; echo last`;
  await runShells(kubectl, 'writer', [{ name: 'main', script }], { restartPolicy: 'Never' });
  await kubectl.run(['wait', '--for=condition=Ready', 'pod/writer', '--timeout=50s']);
  const following = kubectl.follow(['logs', '-f', 'writer']);
  t.teardown(() => following.stop());
  await following.waitFor(/^first$/, waitMs);
  await writeFile(go, '');
  await following.waitFor(/^second$/, waitMs);
  await writeFile(end, '');
  await following.waitFor(/^last$/, waitMs);
  t.is(await following.ended(), 0);
  t.deepEqual(following.lines, ['first', 'second', 'last']);
});

withKubectl('kubectl logs --previous prints the log of the previous run', async (t) => {
  t.timeout(180_000);
  const { kubectl, folder } = t.context;
  const mark = join(folder, 'mark');
  const script = `[ -e ${mark} ] && { echo again; exec sleep 3600; }; touch ${mark}; echo before; exit 1`;
  await runShells(kubectl, 'faller', [{ name: 'main', script }]);
  await eventually(async () => (await kubectl.try(['logs', 'faller'])).stdout === 'again\n', waitMs);
  t.is(await kubectl.run(['logs', 'faller', '--previous']), 'before\n');
});

withKubectl('a pod without a node has an empty log, and an unreachable node is named in the error', async (t) => {
  t.timeout(180_000);
  const { kubectl } = t.context;
  await runShells(kubectl, 'waiting', [{ name: 'main', script: 'true' }], {
    nodeName: '',
    schedulerName: 'none',
  });
  t.is(await kubectl.run(['get', '--raw', '/api/v1/namespaces/default/pods/waiting/log']), '');
  const status = {
    addresses: [{ type: 'Hostname', address: 'nowhere.invalid' }],
    daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
  };
  await createObject(kubectl, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'ghost' }, status });
  await runShells(kubectl, 'lost', [{ name: 'main', script: 'true' }], { nodeName: 'ghost' });
  const { code, stderr } = await kubectl.try(['logs', 'lost']);
  t.is(code, 1);
  t.regex(stderr, /ServiceUnavailable.*node "ghost" cannot be reached: nowhere\.invalid does not resolve/);
  await kubectl.run(['delete', 'pod', 'lost', '--force', '--grace-period=0']);
});

withKubectl(
  'the agent accepts the server and administrators, and rejects other identities of the same authority',
  async (t) => {
    const { kubectl } = t.context;
    t.is(await kubectl.run(['get', '--raw', `/api/v1/nodes/${nodeName}/proxy/healthz`]), 'ok');
    t.is(await askAgent(t.context, '/healthz'), 401);
    t.is(await askAgent(t.context, '/healthz', 'bootstrap'), 403);
    t.is(await askAgent(t.context, '/healthz', 'admin'), 200);
  },
);

withKubectl('keelson up --insecure: the agent accepts the server and rejects other clients', async (t) => {
  t.timeout(180_000);
  const insecure = await startNodeOfUp(command ?? '', ['--insecure']);
  t.teardown(() => insecure.stop());
  const { kubectl } = insecure;
  t.is(await kubectl.run(['get', '--raw', `/api/v1/nodes/${nodeName}/proxy/healthz`]), 'ok');
  t.is(await askAgent(insecure, '/pods'), 401);
});
