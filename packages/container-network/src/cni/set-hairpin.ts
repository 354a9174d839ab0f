import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { programPath } from './program-path.ts';

const run = promisify(execFile);

/** Interfaces without this file are not ports of a bridge, and are skipped. */
const script =
  'for name; do file=/sys/class/net/$name/brport/hairpin_mode; if [ -e "$file" ]; then echo 1 > "$file" || exit; fi; done';

/** Enables hairpin mode on these ports of the bridge. `launch` is the command line prefix, as for plugins. */
export async function setHairpin(
  interfaces: readonly string[],
  launch: readonly string[] = [],
  signal?: AbortSignal,
): Promise<void> {
  if (interfaces.length === 0) return;
  const [program = 'sh', ...words] = [...launch, 'sh', '-c', script, 'sh', ...interfaces];
  await run(program, words, { env: { PATH: programPath }, ...(signal && { signal }) });
}
