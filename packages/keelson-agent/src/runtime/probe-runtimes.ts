import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { request } from 'node:http';
import { delimiter, join } from 'node:path';

/** Whether a runtime can be used, and why, for the log. */
export interface Probe {
  readonly usable: boolean;
  readonly reason: string;
}

/** Limit of each probe. The probes run concurrently. */
const probeMs = 250;

/** Whether an engine with the Docker Engine API answers at a unix socket. */
export function probeEngine(endpoint: string, limitMs = probeMs): Promise<Probe> {
  return new Promise((resolve) => {
    const settle = (usable: boolean, reason: string) => resolve({ usable, reason: `${reason} at ${endpoint}` });
    const ping = request({ socketPath: endpoint.replace(/^unix:\/\//, ''), path: '/_ping', agent: false }, (answer) => {
      answer.resume();
      const version = answer.headers['api-version'];
      if (answer.statusCode === 200 && version !== undefined)
        settle(true, `an engine answers (API ${String(version)})`);
      else settle(false, `the response is not that of an engine (status ${answer.statusCode})`);
    });
    // Not injected: time limit of a call to another process, which takes real time.
    const timeout = setTimeout(() => {
      settle(false, `no answer within ${limitMs} ms`);
      ping.destroy();
    }, limitMs);
    ping.once('close', () => clearTimeout(timeout));
    ping.once('error', (error: NodeJS.ErrnoException) => {
      const isAbsent = error.code === 'ENOENT' || error.code === 'ECONNREFUSED';
      settle(false, isAbsent ? 'no engine listens' : `no engine (${error.message})`);
    });
    ping.end();
  });
}

/** Directories of system binaries, which PATH often lacks. */
const systemFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin'];

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Path of the first of the named programs that exists in PATH or in the system directories. */
export function findBinary(names: readonly string[], path = process.env['PATH'] ?? ''): string | undefined {
  const folders = [...path.split(delimiter).filter((folder) => folder !== ''), ...systemFolders];
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
}

/** Whether an OCI binary can run containers here: the agent is root, and the binary answers `--version`. */
export function probeOci(uid: number | undefined, path: string | undefined, limitMs = probeMs): Promise<Probe> {
  if (uid !== 0) return Promise.resolve({ usable: false, reason: 'runc needs root' });
  if (path === undefined) return Promise.resolve({ usable: false, reason: 'no runc in PATH' });
  return new Promise((resolve) => {
    execFile(path, ['--version'], { timeout: limitMs, killSignal: 'SIGKILL', encoding: 'utf8' }, (error, stdout) => {
      const [line = ''] = stdout.split('\n');
      resolve(error === null ? { usable: true, reason: line } : { usable: false, reason: `${path} does not run` });
    });
  });
}
