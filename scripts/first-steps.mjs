// Measures the first steps of a user: from an empty folder to passed tests and `kubectl get` of a kind of the project,
// with the commands of the README. The packages are packed and served by a registry on loopback, which redirects all
// other requests to the registry that npm uses. Needs kubectl.
//
//   node scripts/first-steps.mjs [--limit SECONDS]
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({ options: { limit: { type: 'string' } } });
const limitSeconds = Number(values.limit ?? 90);
const home = mkdtempSync(join(tmpdir(), 'keelson-first-steps-'));
const upstream = spawnSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).stdout.trim();

/** The packed packages: name -> manifest and bytes. */
function pack() {
  const folder = join(home, 'packed');
  spawnSync(process.execPath, [`${root}scripts/pack.mjs`, folder], { stdio: ['ignore', 'ignore', 'inherit'] });
  const files = [folder, join(folder, 'scoped')].flatMap((place) =>
    readdirSync(place).map((name) => join(place, name)),
  );
  const packed = new Map();
  for (const file of files.filter((name) => name.endsWith('.tgz'))) {
    const { stdout } = spawnSync('tar', ['-xzOf', file, 'package/package.json'], { encoding: 'utf8' });
    const manifest = JSON.parse(stdout);
    packed.set(manifest.name, { manifest, bytes: readFileSync(file) });
  }
  return packed;
}

/** A registry with the packed packages. */
async function serve(packed) {
  const server = createServer((request, response) => {
    const name = decodeURIComponent(request.url.slice(1)).replace(/\/-\/.*$/, '');
    const found = packed.get(name);
    if (found === undefined) {
      response.writeHead(302, { location: new URL(request.url.slice(1), upstream).href }).end();
    } else if (request.url.includes('/-/')) response.end(found.bytes);
    else {
      const { manifest, bytes } = found;
      const dist = {
        tarball: `${url}/${manifest.name}/-/package.tgz`,
        integrity: `sha512-${createHash('sha512').update(bytes).digest('base64')}`,
      };
      const { version } = manifest;
      const versions = { [version]: { ...manifest, dist } };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, close: () => server.close() };
}

const registry = await serve(pack());
const env = {
  ...process.env,
  npm_config_registry: registry.url,
  npm_config_replace_registry_host: 'never',
  npm_config_prefer_offline: 'true',
  npm_config_yes: 'true',
  npm_config_update_notifier: 'false',
};
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
  if (!/^# fail 0$/m.test(created.output)) throw new Error('the tests of the project did not run');
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
  // The whole group, as Ctrl+C does: npm and the shell do not forward signals.
  if (server !== undefined) process.kill(-server.child.pid, 'SIGTERM');
  await server?.ended;
  registry.close();
  rmSync(home, { recursive: true, force: true });
}
