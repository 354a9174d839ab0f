// A registry on loopback with the packages of this checkout, packed; all other requests are redirected to the registry
// that npm uses.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The packed packages: name -> manifest and bytes. */
function pack(folder) {
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
async function serve(packed, upstream) {
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

/**
 * Packs into `folder` and serves; `env` makes npm use the registry.
 *
 * @returns {Promise<{ env: Record<string, string>, close: () => void }>}
 */
export async function startPackedRegistry(folder) {
  const upstream = spawnSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).stdout.trim();
  const { url, close } = await serve(pack(folder), upstream);
  const env = {
    npm_config_registry: url,
    npm_config_replace_registry_host: 'never',
    npm_config_prefer_offline: 'true',
    npm_config_yes: 'true',
    npm_config_update_notifier: 'false',
  };
  return { env, close };
}
