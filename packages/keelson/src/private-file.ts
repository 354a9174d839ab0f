import { chmod, mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

const ownerOnly = 0o600;

/** Replaces a file as a whole, readable by its owner only: a crash leaves the old one or the new one. Its directory is made as well. */
export async function writePrivateFile(path: string, content: string | Buffer): Promise<void> {
  const temporary = `${path}.new`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(temporary, content, { mode: ownerOnly });
  await chmod(temporary, ownerOnly);
  await rename(temporary, path);
}
