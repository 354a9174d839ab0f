import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { request } from 'node:http';
import { delimiter, join } from 'node:path';

/** What was found out about a runtime, in words for the log. */
export interface Probe {
  readonly usable: boolean;
  readonly reason: string;
}

/** A start waits for both probes at the most this long each; they run side by side. */
const probeMs = 250;

/** Whether an engine with the Docker Engine API answers at a unix socket. */
export function probeEngine(endpoint: string, limitMs = probeMs): Promise<Probe> {
  return new Promise((resolve) => {
    const found = (usable: boolean, what: string) => resolve({ usable, reason: `${what} at ${endpoint}` });
    const asked = request(
      { socketPath: endpoint.replace(/^unix:\/\//, ''), path: '/_ping', agent: false },
      (answer) => {
        answer.resume();
        const version = answer.headers['api-version'];
        if (answer.statusCode === 200 && version !== undefined)
          found(true, `an engine answers (API ${String(version)})`);
        else found(false, `what answers is no engine (status ${answer.statusCode})`);
      },
    );
    const late = setTimeout(() => {
      found(false, `no answer within ${limitMs} ms`);
      asked.destroy();
    }, limitMs);
    asked.once('close', () => clearTimeout(late));
    asked.once('error', (error: NodeJS.ErrnoException) => {
      const nobody = error.code === 'ENOENT' || error.code === 'ECONNREFUSED';
      found(false, nobody ? 'no engine listens' : `no engine (${error.message})`);
    });
    asked.end();
  });
}

/** Folders in which system binaries stand, beside those of PATH, which often lacks them. */
const systemFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin'];

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The first of these programs in PATH. */
export function findBinary(names: readonly string[], path = process.env['PATH'] ?? ''): string | undefined {
  const folders = [...path.split(delimiter).filter((folder) => folder !== ''), ...systemFolders];
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
}

/** Whether an OCI binary can run containers here: it takes root, and a binary that runs. */
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
