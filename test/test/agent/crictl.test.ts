import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { serveCri } from '@keelson/runtime-cri';
import { createProcessRuntime } from '@keelson/runtime-process';
import test, { type ExecutionContext } from 'ava';
import { Crictl, findCrictl } from '../../src/crictl.ts';

const command = findCrictl();
const crictlTest = command === undefined ? test.skip : test.serial;
const lacking = command === undefined ? ' [not run, there is no crictl and no Go that builds it]' : '';

/** A service of the process runtime with one container that sleeps. */
async function startService(t: ExecutionContext) {
  const folder = await mkdtemp('/tmp/keelson-crictl-');
  const engine = await createProcessRuntime({ stateDirectory: join(folder, 'state'), nodeIp: '127.0.0.1' });
  const service = await serveCri({ engine, socketPath: join(folder, 'cri.sock') });
  const sandboxId = await engine.runtime.runPodSandbox({
    metadata: { name: 'web', namespace: 'default', uid: 'u1', attempt: 0 },
    securityContext: { namespaces: { network: 'node', pid: 'container', ipc: 'node' } },
  });
  const metadata = { name: 'main', attempt: 0 };
  const containerId = await engine.runtime.createContainer(sandboxId, {
    metadata,
    image: 'host',
    command: ['sleep', '100000'],
  });
  await engine.runtime.startContainer(containerId);
  t.teardown(async () => {
    await engine.runtime.removePodSandbox(sandboxId);
    await service[Symbol.asyncDispose]();
    await engine.runtime[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });
  return { crictl: new Crictl(command ?? '', service.socketPath), sandboxId, containerId };
}

for (const transport of ['spdy', 'websocket']) {
  crictlTest(`crictl runs commands and forwards ports over ${transport}${lacking}`, async (t) => {
    t.timeout(120_000);
    const { crictl, sandboxId, containerId } = await startService(t);
    const script = 'echo out; echo err >&2; exit 7';
    const failed = await crictl.run(['exec', '--transport', transport, containerId, 'sh', '-c', script]);
    t.is(failed.stdout, 'out\n', failed.stderr);
    t.regex(failed.stderr, /^err$/m);
    t.regex(failed.stderr, /exit code 7/);
    t.not(failed.code, 0);
    const fed = await crictl.run(
      ['exec', '-i', '--transport', transport, containerId, 'sh', '-c', 'head -c 5'],
      'hello world',
    );
    t.is(fed.stdout, 'hello', fed.stderr);

    const size = 300_000;
    const echo = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
    echo.listen(0, '127.0.0.1');
    await once(echo, 'listening');
    t.teardown(() => echo.close());
    const { port } = echo.address() as AddressInfo;
    const forwarded = await crictl.forward(['--transport', transport, sandboxId, `0:${port}`]);
    t.teardown(() => forwarded.process.kill());
    const answers = ['x', 'y'].map(async (letter) => {
      const socket = connect(forwarded.port, '127.0.0.1');
      socket.end(letter.repeat(size));
      return text(socket);
    });
    t.deepEqual(await Promise.all(answers), ['x'.repeat(size), 'y'.repeat(size)]);
  });
}
