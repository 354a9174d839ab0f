import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { PassThrough, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import * as zlib from 'node:zlib';
import { toolEnvironment } from '@keelson/container-host';
import { isRuntimeError, RuntimeError } from '@keelson/container-runtime';
import { filterLayer } from './filter-layer.ts';
import { fromText } from './inside-root.ts';
import { noChanges } from './layer-changes.ts';
import { mergeLayer } from './merge-layer.ts';

/** A layer in a file: a tar archive, optionally compressed. */
export interface Layer {
  readonly path: string;
  /** Digest of the uncompressed archive. */
  readonly diffId: string;
  readonly mediaType?: string;
}

export interface UnpackOptions {
  /** Path of a folder to create, on the file system of the root. */
  readonly scratch: string;
  /** Maximum unpacked bytes. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
  /** Called with the size of every chunk, and afterwards with 0 for every merged entry. */
  readonly onBytes?: (count: number) => void;
}

/**
 * Applies a layer to `root`. The layer is first unpacked into a separate folder, in which `tar` prevents writes through
 * its own links to other folders, and then merged.
 * @throws `PullFailed`, `Unsupported`; the root is incomplete then
 */
export async function unpackLayer(layer: Layer, root: string, options: UnpackOptions): Promise<void> {
  const { scratch } = options;
  await mkdir(scratch, { mode: 0o755 });
  const changes = noChanges();
  try {
    await unpack(layer, changes, options);
    await mergeLayer(fromText(scratch), fromText(root), changes, () => {
      options.signal?.throwIfAborted();
      options.onBytes?.(0);
    });
  } catch (error) {
    if (isRuntimeError(error)) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new RuntimeError('PullFailed', `cannot unpack a layer: ${message}`, { cause: error });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function unpack(layer: Layer, changes: ReturnType<typeof noChanges>, options: UnpackOptions): Promise<void> {
  const [algorithm = '', hex] = layer.diffId.split(':');
  if (algorithm !== 'sha256' && algorithm !== 'sha512') {
    throw new RuntimeError('PullFailed', `unknown digest "${layer.diffId.slice(0, 100)}"`);
  }
  const hash = createHash(algorithm);
  let unpacked = 0;
  const measured = async function* (source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      unpacked += chunk.length;
      if (unpacked > options.maxBytes) throw new Error(`the layer is larger than ${options.maxBytes} bytes`);
      hash.update(chunk);
      options.onBytes?.(chunk.length);
      yield chunk;
    }
  };
  const decompress = decompressor(await firstBytes(layer.path), layer.mediaType);
  const tar = startTar(options.scratch);
  const fed = pipeline(
    createReadStream(layer.path),
    decompress,
    measured,
    (source: AsyncIterable<Buffer>) => filterLayer(source, changes),
    tar.stdin,
    options.signal === undefined ? {} : { signal: options.signal },
  );
  const problem = await fed.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (problem !== undefined) tar.kill();
  const tarError = await tar.ended;
  // When `tar` failed first, its message is the reason, and the broken pipe is a consequence.
  if (problem !== undefined && !(isBrokenPipe(problem) && tarError !== undefined)) throw problem;
  if (tarError !== undefined) throw new Error(tarError);
  const actual = hash.digest('hex');
  if (actual !== hex) throw new Error(`the content has the digest ${algorithm}:${actual}, not ${layer.diffId}`);
}

/** Starts `tar`. Owners are preserved only when this process runs as root. */
function startTar(folder: string) {
  const owner = process.getuid?.() === 0 ? '--same-owner' : '--no-same-owner';
  const flags = ['-xp', '--numeric-owner', owner, '--xattrs', '--xattrs-include=*', '--delay-directory-restore'];
  // The umask determines the mode of folders that have no entry in the archive.
  const args = ['-c', 'umask 022; exec tar "$@"', 'tar', ...flags, '-f', '-', '-C', folder];
  const child = spawn('sh', args, { env: toolEnvironment, stdio: ['pipe', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-2000);
  });
  const ended = once(child, 'close').then(
    ([code]) => (code === 0 ? undefined : firstErrorIn(output) || `tar exited with ${String(code)}`),
    (error: Error) => error.message,
  );
  return { stdin: child.stdin, ended, kill: () => child.kill('SIGKILL') };
}

/** The first error of `tar`. Further messages are consequences. */
function firstErrorIn(output: string): string | undefined {
  return output
    .split('\n')
    .find((line) => line !== '' && !line.includes('Removing leading'))
    ?.trim();
}

function isBrokenPipe(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && (error.code === 'EPIPE' || error.code === 'ERR_STREAM_PREMATURE_CLOSE')
  );
}

async function firstBytes(path: string): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** The decompressor for a layer, detected by its first bytes. @throws `Unsupported` */
function decompressor(start: Buffer, mediaType = 'application/zstd'): Transform {
  if (start[0] === 0x1f && start[1] === 0x8b) return zlib.createGunzip();
  if (!start.subarray(0, 4).equals(zstdMagic)) return new PassThrough();
  // The oldest supported version of Node has no function `createZstdDecompress`.
  const create: unknown = Reflect.get(zlib, 'createZstdDecompress');
  if (typeof create === 'function') return create() as Transform;
  throw new RuntimeError(
    'Unsupported',
    `layers of type "${mediaType}" are not supported: Node ${process.version} cannot unpack zstd`,
  );
}
