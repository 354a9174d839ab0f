import { closeSync, openSync, readdirSync, readSync } from 'node:fs';

export interface ProcessFilter {
  /** Also matches environment variables. Default false: only the command line. */
  readonly environment?: boolean;
}

/** Reused for every read, because a scan reads one or two files of each process of the machine. */
const buffer = Buffer.allocUnsafeSlow(256 * 1024);

/** Reads at most 256 KiB of a file below /proc; empty for kernel threads and for processes that have ended. */
function readProc(path: string): Buffer {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    let length = 0;
    for (;;) {
      const count = readSync(descriptor, buffer, length, buffer.length - length, null);
      length += count;
      if (count === 0 || length === buffer.length) return buffer.subarray(0, length);
    }
  } catch {
    return buffer.subarray(0, 0);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/**
 * Processes of the machine, without this one, whose command line contains one of the texts: `PID: COMMAND LINE`, cut
 * after 1,000 characters. One scan covers all texts.
 */
export function processesWith(texts: readonly string[], { environment = false }: ProcessFilter = {}): string[] {
  const matches = (bytes: Buffer) => texts.some((text) => bytes.includes(text, 0, 'latin1'));
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
    const bytes = readProc(`/proc/${pid}/cmdline`);
    if (bytes.length === 0) return [];
    const line = `${pid}: ${bytes.toString('latin1', 0, 1000).replaceAll('\0', ' ')}`;
    return matches(bytes) || (environment && matches(readProc(`/proc/${pid}/environ`))) ? [line] : [];
  });
}
