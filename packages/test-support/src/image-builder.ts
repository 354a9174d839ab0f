import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const programs = ['sh', 'cat', 'sleep', 'id', 'env', 'ls'];

/** A root file system with a few programs of this machine and the libraries they need. */
export function buildRoot(folder: string): void {
  for (const name of programs) {
    const path = execFileSync('/bin/sh', ['-c', `command -v ${name}`], {
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin' },
    }).trim();
    placeProgram(folder, path, `/bin/${name}`);
  }
  mkdirSync(join(folder, 'etc'));
  mkdirSync(join(folder, 'tmp'));
  writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\napp:x:4242:4343::/home/app:/bin/sh\n');
  writeFileSync(join(folder, 'suite-file'), 'original\n');
}

/** Copies a program of this machine to a path of a root file system, and the libraries that it is linked with. */
export function placeProgram(root: string, from: string, to: string): void {
  place(root, from, to);
  const libraries = execFileSync('ldd', [from], { encoding: 'utf8' }).matchAll(/(\/\S+)/g);
  for (const [library] of libraries) place(root, library, library);
}

function place(root: string, from: string, to: string): void {
  mkdirSync(dirname(join(root, to)), { recursive: true });
  copyFileSync(realpathSync(from), join(root, to));
}

/** A tar file of a folder's contents. */
export function tarOf(folder: string, file: string, ...flags: string[]): void {
  execFileSync('tar', [...flags, '--numeric-owner', '--owner=0', '--group=0', '-cf', file, '-C', folder, '.']);
}

const digest = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');

/** What `docker save` would write: a tar file with a manifest, a configuration and layers. `layers` are tar files. */
export function dockerArchive(
  scratch: string,
  file: string,
  reference: string,
  layers: readonly string[],
  config: object = {},
): void {
  mkdirSync(scratch, { recursive: true });
  const names = layers.map((layer, position) => {
    copyFileSync(layer, join(scratch, `layer-${position}.tar`));
    return `layer-${position}.tar`;
  });
  const diffIds = layers.map((layer) => `sha256:${digest(readFileSync(layer))}`);
  const document = JSON.stringify({
    architecture: 'amd64',
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: diffIds },
  });
  writeFileSync(join(scratch, 'config.json'), document);
  writeFileSync(
    join(scratch, 'manifest.json'),
    JSON.stringify([{ Config: 'config.json', RepoTags: [reference], Layers: names }]),
  );
  tarOf(scratch, file);
}

/** Writes an OCI layout of one image with gzipped layers. Returns the id of the image. */
export function ociLayout(folder: string, reference: string, layers: readonly string[], config: object = {}): string {
  const blobs = join(folder, 'blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  const add = (bytes: Buffer) => {
    writeFileSync(join(blobs, digest(bytes)), bytes);
    return { digest: `sha256:${digest(bytes)}`, size: bytes.length };
  };
  const packed = layers.map((layer) => add(execFileSync('gzip', ['-nc', layer], { maxBuffer: 1 << 28 })));
  const diffIds = layers.map((layer) => `sha256:${digest(readFileSync(layer))}`);
  const image = { architecture: 'amd64', os: 'linux', config, rootfs: { type: 'layers', diff_ids: diffIds } };
  const configuration = add(Buffer.from(JSON.stringify(image)));
  const manifest = add(Buffer.from(JSON.stringify({ schemaVersion: 2, config: configuration, layers: packed })));
  const annotations = { 'org.opencontainers.image.ref.name': reference };
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  writeFileSync(
    join(folder, 'index.json'),
    JSON.stringify({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] }),
  );
  return configuration.digest;
}
