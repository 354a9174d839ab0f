import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { eventually } from '@keelson/testing';
import { Exec, KubeConfig, PortForward, type V1Status } from '@kubernetes/client-node';
import anyTest, { type TestFn } from 'ava';
import { findKubectl } from '../../src/kubectl.ts';
import { type NodeOfUp, runShells, startNodeOfUp } from '../../src/node-of-up.ts';

/**
 * kubectl in a container: through the server, which forwards bytes, to the agent, over each transport that kubectl
 * has.
 */

const waitMs = 60_000;
const command = process.platform === 'linux' ? findKubectl() : undefined;
const test = anyTest as TestFn<NodeOfUp>;
const withKubectl = command === undefined ? test.skip : test;
let up: NodeOfUp | undefined;

const transports = {
  WebSockets: {},
  SPDY: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false', KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false' },
} as const;

const serveHello = `require('http').createServer((_, answer) => answer.end('hello')).listen(0, '127.0.0.1', function () {
  require('fs').writeFileSync(process.argv[1], String(this.address().port)); })`;

test.before(async (t) => {
  if (command === undefined) return;
  t.timeout(180_000);
  up = await startNodeOfUp(command);
  await runShells(up.kubectl, 'box', [
    {
      name: 'main',
      script: `exec "${process.execPath}" -e "$SERVE" ${join(up.folder, 'port')}`,
      extra: { env: [{ name: 'SERVE', value: serveHello }] },
    },
    { name: 'side', script: 'exec sleep 3600' },
  ]);
  await up.kubectl.run(['wait', '--for=condition=Ready', 'pod/box', '--timeout=50s']);
});
test.beforeEach((t) => {
  if (up !== undefined) t.context = up;
});
test.after.always(() => up?.stop());

for (const [transport, env] of Object.entries(transports)) {
  withKubectl(
    `kubectl exec over ${transport}: stdout, stderr, stdin, exit code, and more data than a buffer`,
    async (t) => {
      t.timeout(180_000);
      const { kubectl } = t.context;
      const exec = (words: readonly string[], input?: string) =>
        kubectl.try(['exec', ...(input === undefined ? [] : ['-i']), 'box', '-c', 'main', '--', ...words], {
          env,
          ...(input === undefined ? {} : { input }),
        });
      t.deepEqual(await exec(['sh', '-c', 'echo out; echo err >&2']), { code: 0, stdout: 'out\n', stderr: 'err\n' });
      const failed = await exec(['sh', '-c', 'exit 3']);
      t.is(failed.code, 3);
      t.regex(failed.stderr, /command terminated with exit code 3/);
      const long = randomBytes(1_500_000).toString('base64');
      t.true((await exec(['cat'], long)).stdout === long);
      const absent = await exec(['no-such-program']);
      t.not(absent.code, 0);
      t.regex(absent.stderr, /no-such-program/);
      t.regex(
        (await kubectl.try(['exec', 'box', '-c', 'none', '--', 'true'], { env })).stderr,
        /container none is not valid for pod box|container not found/,
      );
    },
  );

  withKubectl(`kubectl attach over ${transport} reads from and writes to the process of the container`, async (t) => {
    t.timeout(180_000);
    const { kubectl } = t.context;
    const name = `asker-${transport.toLowerCase()}`;
    await runShells(kubectl, name, [
      { name: 'main', script: 'read line; echo "got $line"; exec sleep 3600', extra: { stdin: true } },
    ]);
    await kubectl.run(['wait', '--for=condition=Ready', `pod/${name}`, '--timeout=50s']);
    const attached = kubectl.follow(['attach', '-i', name], { env, input: 'a word\n' });
    t.teardown(() => attached.stop());
    await attached.waitFor(/^got a word$/, waitMs);
    t.is(await kubectl.run(['logs', name]), 'got a word\n');
  });

  withKubectl(
    `kubectl port-forward over ${transport}: several concurrent connections, and a port without a listener`,
    async (t) => {
      t.timeout(180_000);
      const { kubectl, folder } = t.context;
      const forward = async (port: string) => {
        const forwarding = kubectl.follow(['port-forward', 'pod/box', `:${port}`], { env });
        t.teardown(() => forwarding.stop());
        const line = await forwarding.waitFor(/^Forwarding from 127\.0\.0\.1:/, waitMs);
        return { url: `http://127.0.0.1:${/:(\d+) ->/.exec(line)?.[1]}/`, forwarding };
      };
      const { url } = await forward(await eventually(() => readFile(join(folder, 'port'), 'utf8'), waitMs));
      const request = async () => (await fetch(url, { headers: { connection: 'close' } })).text();
      t.deepEqual(await Promise.all([request(), request(), request()]), ['hello', 'hello', 'hello']);
      t.is(await request(), 'hello');
      const lost = await forward('1');
      await t.throwsAsync(fetch(lost.url));
      t.is(await lost.forwarding.ended(), 1, 'kubectl exits, since no process listens on the port');
    },
  );
}

withKubectl('kubectl cp copies files into a container and out of it', async (t) => {
  t.timeout(180_000);
  const { kubectl, folder } = t.context;
  const content = randomBytes(300_000);
  await writeFile(join(folder, 'sent'), content);
  await kubectl.run(['cp', join(folder, 'sent'), `box:${join(folder, 'inside')}`, '-c', 'side']);
  t.true((await readFile(join(folder, 'inside'))).equals(content), 'the file in the container differs');
  await kubectl.run(['cp', `box:${join(folder, 'inside')}`, join(folder, 'back'), '-c', 'side']);
  t.true((await readFile(join(folder, 'back'))).equals(content), 'the copied file differs');
});

withKubectl('the Node client runs a command, and receives its output and exit status', async (t) => {
  t.timeout(180_000);
  const { server } = t.context;
  const config = new KubeConfig();
  config.loadFromFile(server.kubeconfig);
  const chunks: Buffer[] = [];
  const stdout = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  const status = await new Promise<V1Status>((resolve, reject) => {
    const words = ['sh', '-c', 'read word; echo "$word back"; exit 4'];
    const stdin = new PassThrough();
    stdin.end('there\n');
    new Exec(config).exec('default', 'box', 'main', words, stdout, null, stdin, false, resolve).catch(reject);
  });
  t.is(Buffer.concat(chunks).toString(), 'there back\n');
  t.is(status.reason, 'NonZeroExitCode');
  t.is(status.details?.causes?.[0]?.message, '4');
});

withKubectl('the Node client forwards a port, and receives the error of a port without a listener', async (t) => {
  t.timeout(180_000);
  const { server } = t.context;
  const config = new KubeConfig();
  config.loadFromFile(server.kubeconfig);
  const echo = createServer((socket) => socket.on('data', (chunk) => socket.end(`heard ${chunk}`)));
  await once(echo.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => echo.close());
  const forward = async (port: number) => {
    const [output, errors, input] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const socket = await new PortForward(config).portForward('default', 'box', [port], output, errors, input);
    const closed = 'once' in socket ? once(socket, 'close') : Promise.reject(new Error('no socket'));
    input.write('you');
    await closed;
    return [await text(output.end()), await text(errors.end())];
  };
  t.deepEqual(await forward((echo.address() as AddressInfo).port), ['heard you', '']);
  const [output, errors] = await forward(1);
  t.is(output, '');
  t.regex(errors ?? '', /^error forwarding port 1 to pod box, uid : cannot connect to port 1 of the pod$/);
});
