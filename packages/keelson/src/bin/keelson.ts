#!/usr/bin/env node
import module from 'node:module';
import { join } from 'node:path';

interface CompileCache {
  /** From Node 22.1 on. */
  enableCompileCache?(folder: string): unknown;
  /** From Node 22.10 on. */
  flushCompileCache?(): void;
}

// Compiled code is kept in a folder, which makes the next start a fifth shorter. The folder belongs to the user,
// because code is executed from it. Node writes it at the exit; a process that runs for longer, such as a server, also
// writes it after its start, because it may be killed.
const { XDG_CACHE_HOME, HOME } = process.env;
const caches = XDG_CACHE_HOME || (HOME && join(HOME, '.cache'));
if (caches) {
  const { enableCompileCache, flushCompileCache } = module as CompileCache;
  enableCompileCache?.(join(caches, 'keelson'));
  // Not injected: nothing depends on it but the duration of the next start.
  if (flushCompileCache !== undefined) setTimeout(flushCompileCache, 5000).unref();
}

const terminated = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => resolve());
  process.once('SIGINT', () => resolve());
});

// A reader such as `head` may close the output early. That ends neither a server nor a command with an error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

const [command, program, ...rest] = process.argv.slice(2);
// Only the part that is needed is loaded: the etcd of envtest stores nothing, and a test suite waits for its start.
if (command === 'envtest' && program === 'etcd') {
  process.exitCode = await (await import('../envtest/etcd.ts')).runEnvtestEtcd(rest);
} else {
  const { main } = await import('../cli/main.ts');
  process.exitCode = await main(process.argv.slice(2), {
    env: process.env,
    stdout: (text) => process.stdout.write(text),
    stderr: (text) => process.stderr.write(text),
    terminated,
  });
}
// Not injected: exits although operations without a waiting caller are pending, such as a connection attempt to an
// unavailable store.
setTimeout(() => process.exit(), 1000).unref();
