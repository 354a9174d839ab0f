import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from '@keelson/test-support';
import test from 'ava';

const module = new URL('../src/measure/spawned.js', import.meta.url).href;

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('what a benchmark has started ends with it, also when a signal ends the benchmark', async (t) => {
  const server = `process.stdout.write('ready 1\\n'); setInterval(() => {}, 1_000)`;
  const benchmark = `
    import { Spawned } from ${JSON.stringify(module)};
    const { pid } = await Spawned.start(process.execPath, ['-e', ${JSON.stringify(server)}]);
    process.stdout.write(String(pid));`;
  const words = ['--input-type=module', '--eval', benchmark];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  const pid = Number(said.toString());
  t.true(exists(pid));
  child.kill('SIGTERM');
  t.deepEqual(await once(child, 'exit'), [143, null]);
  await until(() => !exists(pid));
});
