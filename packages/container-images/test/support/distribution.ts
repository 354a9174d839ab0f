import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, LoopbackRegistry, type RegistryImage } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import { scratchFolder } from './workshop.ts';

/** `user` with the password `pass`. */
const users = 'user:$2b$04$cK7xtcvVkZ3AuO7C8IJeqeBSvjyNJBpFcSKkk6nFZ.9znNT1QKGlK\n';
const authorization = `Basic ${Buffer.from('user:pass').toString('base64')}`;

/**
 * The reference implementation of a registry, as a process of its own with `user` and `pass`; returns its host and
 * port.
 */
export async function startDistribution(t: ExecutionContext): Promise<string> {
  const folder = await scratchFolder(t);
  writeFileSync(join(folder, 'users'), users);
  const config = {
    version: '0.1',
    storage: { filesystem: { rootdirectory: join(folder, 'data') } },
    http: { addr: '127.0.0.1:0' },
    auth: { htpasswd: { realm: 'test', path: join(folder, 'users') } },
  };
  writeFileSync(join(folder, 'config.yml'), JSON.stringify(config));
  const child = spawn(findProgram('docker-registry') ?? '', ['serve', join(folder, 'config.yml')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const gone = once(child, 'exit');
  t.teardown(async () => {
    child.kill();
    await gone;
  });
  child.stdout.resume();
  return new Promise((resolve, reject) => {
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const host = /listening on (127\.0\.0\.1:\d+)/.exec(output)?.[1];
      if (host !== undefined) resolve(host);
    });
    gone.then(() => reject(new Error(`the registry did not start: ${output}`)), reject);
  });
}

/** Puts an image into a registry that takes pushes. Returns its id. */
export async function push(host: string, name: string, tag: string, image: RegistryImage): Promise<string> {
  await using from = await LoopbackRegistry.open();
  const { id, layers } = from.add(`${name}:${tag}`, image);
  for (const digest of [id, ...layers]) {
    const blob = await fetch(`http://${from.host}/v2/${name}/blobs/${digest}`);
    const begun = await sent(`http://${host}/v2/${name}/blobs/uploads/`, { method: 'POST' });
    const location = new URL(begun.headers.get('location') ?? '', `http://${host}`);
    location.searchParams.set('digest', digest);
    await sent(location.href, { method: 'PUT', body: await blob.arrayBuffer() });
  }
  const manifest = await fetch(`http://${from.host}/v2/${name}/manifests/${tag}`);
  const headers = { 'content-type': manifest.headers.get('content-type') ?? '' };
  await sent(`http://${host}/v2/${name}/manifests/${tag}`, {
    method: 'PUT',
    body: await manifest.arrayBuffer(),
    headers,
  });
  return id;
}

async function sent(url: string, init: RequestInit & { readonly headers?: Record<string, string> }): Promise<Response> {
  const answer = await fetch(url, { ...init, headers: { ...init.headers, authorization } });
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return answer;
}
