// Measures the first steps of a user: from an empty folder to passed tests and `kubectl get` of a kind of the project,
// with the commands of the README and the packages of this checkout. Needs kubectl.
//
//   node scripts/first-steps.mjs [--limit SECONDS]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPackedRegistry } from './packed-registry.mjs';

const { values } = parseArgs({ options: { limit: { type: 'string' } } });
const limitSeconds = Number(values.limit ?? 90);
const home = mkdtempSync(join(tmpdir(), 'keelson-first-steps-'));

const registry = await startPackedRegistry(join(home, 'packed'));
const env = { ...process.env, ...registry.env };
const started = performance.now();
const seconds = (since) => (performance.now() - since) / 1000;

/** Runs a command; resolves with its output when it ends, or when the output contains `until`. */
async function step(command, cwd, until) {
  const from = performance.now();
  const child = spawn('sh', ['-c', `exec ${command}`], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  const ended = once(child, 'close');
  await new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += String(chunk);
        if (until !== undefined && output.includes(until)) resolve();
      });
    child.once('close', resolve);
  });
  process.stdout.write(`\n$ ${command}    (${seconds(from).toFixed(1)} s)\n${output.trimEnd()}\n`);
  if (child.exitCode !== null && child.exitCode !== 0) throw new Error(`${command} failed`);
  return { output, child, ended };
}

let server;
try {
  const project = join(home, 'my-plane');
  const created = await step('npm create keelson@latest my-plane -- --yes', home);
  if (!/^[#ℹ] fail 0$/mu.test(created.output)) throw new Error('the tests of the project did not run');
  server = await step('npm run dev --silent', project, 'serving on');
  const { output } = await step('npm run sample --silent', project);
  if (!/^hello +3 /m.test(output)) throw new Error('kubectl does not show the object');
  const total = seconds(started);
  process.stdout.write(`\n3 commands, ${total.toFixed(1)} s (limit ${limitSeconds} s)\n`);
  process.exitCode = total <= limitSeconds ? 0 : 1;
} catch (error) {
  process.stdout.write(`\n${error.message}\n`);
  process.exitCode = 1;
} finally {
  // The signal goes to the whole process group, as with Ctrl+C, because npm and the shell do not forward signals.
  if (server !== undefined) process.kill(-server.child.pid, 'SIGTERM');
  await server?.ended;
  registry.close();
  rmSync(home, { recursive: true, force: true });
}
