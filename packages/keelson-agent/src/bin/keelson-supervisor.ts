import { superviseOci } from '../supervisor/supervisor-main.ts';

const terminated = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => resolve());
  process.once('SIGINT', () => resolve());
});
// A full disk, or an agent that does not listen any more, must not end it.
process.stderr.on('error', () => {});

process.exitCode = await superviseOci({
  word: process.argv[2],
  stderr: (text) => process.stderr.write(text),
  tell: (message) => process.send?.(message, undefined, undefined, () => {}),
  terminated,
});
