import { readFile } from 'node:fs/promises';
import type { TerminalSize } from '@keelson/container-runtime';
import { tryTool } from './run-tool.ts';
import { findTool, tool } from './tools.ts';

/** Whether this machine has the programs that give a process a terminal of its own; found out by trying. */
export async function terminalsWork(): Promise<boolean> {
  if (!['script', 'stty', 'tty'].every((name) => findTool(name) !== undefined)) return false;
  const [, ...words] = withTerminal(['tty']);
  return (await tryTool('script', words)) === undefined;
}

/** One word for a POSIX shell, whatever is in it. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * A command that has a terminal of its own, leads its session, and ends with the code of `words`. The other side of
 * the terminal are the standard streams of what is returned, which holds it; the end of its input is typed into the
 * terminal.
 */
export function withTerminal(words: readonly string[]): string[] {
  // The words are for its shell; the typescript that it writes is thrown away.
  return [tool('script'), '-q', '-e', '-f', '-c', `exec ${words.map(quote).join(' ')}`, '/dev/null'];
}

/**
 * What sets the size of a terminal whose name is in a file, such as `/dev/pts/3`; the kernel then signals SIGWINCH to
 * its foreground processes. Sizes that follow one another quickly are combined, and the last one wins. A terminal
 * that is gone is no error.
 */
export function terminalResizer(file: string): (size: TerminalSize) => void {
  let next: TerminalSize | undefined;
  let busy = false;
  const work = async () => {
    busy = true;
    for (let size = next; size !== undefined; size = next) {
      next = undefined;
      const name = (await readFile(file, 'utf8').catch(() => '')).trim();
      if (!name.startsWith('/dev/')) continue;
      await tryTool('stty', ['-F', name, 'rows', String(size.height), 'cols', String(size.width)]);
    }
    busy = false;
  };
  return (size) => {
    next = size;
    if (!busy) void work();
  };
}
