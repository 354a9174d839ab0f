import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';

/** True where a process may make mounts in a namespace of its own; in continuous integration it must. */
export const mayMount = process.platform === 'linux' && process.getuid?.() === 0;

/**
 * A mount namespace without other processes, with an empty in-memory file system at `directory`. Returns the file by
 * which it is entered; it is removed after the test.
 */
export async function mountNamespace(t: ExecutionContext, directory: string): Promise<string> {
  const script = 'mount -t tmpfs -o size=8m,mode=0755 tmpfs "$1" && echo ready && exec cat';
  const child = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', directory], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.teardown(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  await once(child.stdout, 'data');
  return `/proc/${child.pid}/ns/mnt`;
}
