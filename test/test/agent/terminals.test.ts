import { PassThrough, Writable } from 'node:stream';
import { eventually } from '@keelson/testing';
import { Exec, KubeConfig, type V1Status } from '@kubernetes/client-node';
import anyTest, { type TestFn } from 'ava';
import { type CommandInTerminal, findKubectl } from '../../src/kubectl.ts';
import { type NodeOfUp, nodeName, runShells, startNodeOfUp } from '../../src/node-of-up.ts';

/* kubectl in a terminal, with a program in a container of `keelson up` that has one, too. */

const waitMs = 60_000;
const command = process.platform === 'linux' ? findKubectl() : undefined;
const test = anyTest as TestFn<NodeOfUp>;
const withKubectl = command === undefined ? test.skip : test;
let up: NodeOfUp | undefined;

const transports = {
  WebSockets: {},
  SPDY: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false' },
} as const;

test.before(async (t) => {
  if (command === undefined) return;
  t.timeout(180_000);
  up = await startNodeOfUp(command);
  await runShells(up.kubectl, 'box', [{ name: 'main', script: 'exec sleep 3600' }]);
  await up.kubectl.run(['wait', '--for=condition=Ready', 'pod/box', '--timeout=50s']);
});
test.beforeEach((t) => {
  if (up !== undefined) t.context = up;
});
test.after.always(() => up?.stop());

/** Waits until the terminal of the shell in the container has a size. */
async function hasSize(shell: CommandInTerminal, size: string): Promise<void> {
  await eventually(async () => {
    shell.type('echo size=$(stty size)=\r');
    return (await shell.until(/size=\d+ \d+=/)).includes(`size=${size}=`) || undefined;
  }, waitMs);
}

for (const [transport, env] of Object.entries(transports)) {
  withKubectl(
    `kubectl exec -it over ${transport}: the size of the terminal of the caller, signals by key, the exit code`,
    async (t) => {
      t.timeout(180_000);
      const shell = t.context.kubectl.inTerminal(['exec', '-it', 'box', '--', 'sh'], [31, 101], { env });
      t.teardown(() => shell.stop());
      shell.type('tty; echo at=$((40+2))\r');
      t.regex(await shell.until(/at=42/), /\/dev\/pts\/\d+\r\n/);
      await hasSize(shell, '31 101');
      shell.resize([44, 122]);
      await hasSize(shell, '44 122');
      shell.type('sh -c \'echo slee"ping"; exec sleep 1000\'\r');
      await shell.until(/sleeping/);
      shell.type('\u0003');
      shell.type('echo back=$((1+1))\r');
      await shell.until(/back=2/);
      shell.type('exit 6\r');
      await shell.until(/command terminated with exit code 6/);
      t.is(await shell.ended(), 6);
    },
  );

  withKubectl(`kubectl run -it over ${transport}: a pod with a terminal, which kubectl run --rm deletes`, async (t) => {
    t.timeout(180_000);
    const name = `run-${transport.toLowerCase()}`;
    const overrides = JSON.stringify({ apiVersion: 'v1', spec: { nodeName, terminationGracePeriodSeconds: 0 } });
    const words = [
      'run',
      name,
      '-it',
      '--rm',
      '--restart=Never',
      '--image=host',
      `--overrides=${overrides}`,
      '--',
      'sh',
    ];
    const shell = t.context.kubectl.inTerminal(words, [23, 79], { env });
    t.teardown(() => shell.stop());
    // Keys typed before kubectl is attached stay in its own terminal.
    await shell.until(/try pressing enter|[#$] $/);
    await eventually(async () => {
      shell.type('\recho at=$((40+2))\r');
      return shell.until(/at=42/, 2_000).catch(() => undefined);
    }, waitMs);
    await hasSize(shell, '23 79');
    shell.type('exit\r');
    await shell.until(new RegExp(`pod "${name}" deleted`));
    t.is(await shell.ended(), 0);
  });

  withKubectl(`kubectl attach -it over ${transport}: the terminal of the container, repeatedly`, async (t) => {
    t.timeout(180_000);
    const { kubectl } = t.context;
    const name = `attach-${transport.toLowerCase()}`;
    await runShells(kubectl, name, [{ name: 'main', script: 'exec sh', extra: { stdin: true, tty: true } }]);
    await kubectl.run(['wait', '--for=condition=Ready', `pod/${name}`, '--timeout=50s']);
    for (const [rows, columns] of [
      [25, 90],
      [40, 130],
    ] as const) {
      const shell = kubectl.inTerminal(['attach', '-it', name], [rows, columns], { env });
      t.teardown(() => shell.stop());
      await shell.until(/try pressing enter|[#$] $/);
      await hasSize(shell, `${rows} ${columns}`);
      shell.type(`echo was=${rows}\r`);
      await shell.until(new RegExp(`was=${rows}`));
      await shell.stop();
    }
    t.regex(await kubectl.run(['logs', name]), /was=25\r\n[\s\S]*was=40\r\n/);
  });
}

/** A stream with a size, as standard output has in a terminal. */
class Screen extends Writable {
  rows = 17;
  columns = 66;
  text = '';

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

withKubectl('the Node client runs a command in a terminal, with its size and its exit code', async (t) => {
  t.timeout(180_000);
  const config = new KubeConfig();
  config.loadFromFile(t.context.server.kubeconfig);
  const screen = new Screen();
  const stdin = new PassThrough();
  const status = new Promise<V1Status>((resolve, reject) => {
    new Exec(config).exec('default', 'box', 'main', ['sh'], screen, null, stdin, true, resolve).catch(reject);
  });
  stdin.write('tty; echo at=$((40+2))\n');
  await eventually(() => Promise.resolve(/at=42/.test(screen.text) || undefined), waitMs);
  t.regex(screen.text, /\/dev\/pts\/\d+\r\n/);
  screen.rows = 18;
  screen.columns = 67;
  screen.emit('resize');
  await eventually(async () => {
    stdin.write('stty size\n');
    return /\r\n18 67\r\n/.test(screen.text) || undefined;
  }, waitMs);
  stdin.write('exit 9\n');
  t.is((await status).details?.causes?.[0]?.message, '9');
});
