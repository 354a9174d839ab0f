// Measures the processor time of an idle `keelson up` with pods that do nothing, of the server's process and of all
// processes that it has started. Usage: node scripts/idle-cost.mjs [--pods 50] [--seconds 60] [options of keelson up]
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createHttpClient, kubeconfigAccess, loadKubeconfig } from '@keelson/client';

const binary = fileURLToPath(new URL('../packages/keelson/dist/bundle/keelson.js', import.meta.url));
const ticksPerSecond = 100;
const words = process.argv.slice(2);

function take(name, fallback) {
  const at = words.indexOf(name);
  return at === -1 ? fallback : Number(words.splice(at, 2)[1]);
}

const pods = take('--pods', 50);
const seconds = take('--seconds', 60);
const data = mkdtempSync(join(tmpdir(), 'keelson-idle-'));
const server = spawn(process.execPath, [
  binary,
  ...['up', '--data', data, '--listen', '127.0.0.1:0', '--log-level', 'warn', ...words],
]);

/** Processor time of a process in seconds; undefined when it has ended. */
function cpuOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  } catch {
    return undefined;
  }
}

/** Processes of the data directory other than the server: monitors and log keepers. */
function helpers() {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name) || Number(name) === server.pid || Number(name) === process.pid) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(data);
    } catch {
      return false;
    }
  });
}

const sum = (pids) => pids.reduce((total, pid) => total + (cpuOf(pid) ?? 0), 0);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

server.stderr.pipe(process.stderr);
await new Promise((resolve, reject) => {
  server.once('exit', (code) => reject(new Error(`keelson ended with ${code}`)));
  server.stdout.on('data', (chunk) => {
    if (String(chunk).includes('serving on')) resolve();
  });
});

const { options } = await kubeconfigAccess(await loadKubeconfig({ path: join(data, 'kubeconfig') }));
const client = createHttpClient(options);
const objects = client.dynamic({ group: '', version: 'v1', resource: 'pods' }).namespace('default');

try {
  const container = { name: 'main', image: 'host', command: ['sleep', '3600'] };
  const spec = { terminationGracePeriodSeconds: 1, containers: [container] };
  for (let i = 0; i < pods; i += 1)
    await objects.create({ apiVersion: 'v1', kind: 'Pod', metadata: { name: `idle-${i}` }, spec });
  for (;;) {
    const { items } = await objects.list();
    const ready = items.filter(({ status }) =>
      status.conditions?.some(({ type, status: state }) => type === 'Ready' && state === 'True'),
    );
    if (ready.length === pods) break;
    await pause(500);
  }
  client.close();
  await pause(15_000);
  const before = [cpuOf(server.pid), sum(helpers())];
  const began = performance.now();
  await pause(seconds * 1000);
  const elapsed = (performance.now() - began) / 1000;
  const share = (used) => `${((used / elapsed) * 100).toFixed(2)} %`;
  const [own, others] = [cpuOf(server.pid) - before[0], sum(helpers()) - before[1]];
  const memory = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) >> 10;
  process.stdout.write(
    `idle with ${pods} pods over ${elapsed.toFixed(0)} s: server ${share(own)}, monitors and log keeper ${share(others)}, ` +
      `together ${share(own + others)} of a core; server ${memory} MiB\n`,
  );
} finally {
  const down = spawn(process.execPath, [binary, 'down', '--data', data], { stdio: 'inherit' });
  await new Promise((resolve) => down.once('exit', resolve));
  rmSync(data, { recursive: true, force: true });
}
