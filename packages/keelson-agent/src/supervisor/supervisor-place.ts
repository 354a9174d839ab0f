import { join } from 'node:path';

/** Paths of the files of a supervisor. All are below the agent's root directory and accessible to their owner only. */
export interface SupervisorPlace {
  readonly folder: string;
  /** File with the key and the certificate that both the agent and the supervisor use, in PEM. */
  readonly pair: string;
  /** File that records the process of the supervisor and its options. */
  readonly record: string;
  /** File with the process ID of the supervisor, for operators. */
  readonly pid: string;
  /** File that is locked while the supervisor runs. */
  readonly lock: string;
  readonly log: string;
}

export function supervisorPlace(rootDir: string): SupervisorPlace {
  const folder = join(rootDir, 'supervisor');
  const at = (name: string) => join(folder, name);
  return {
    folder,
    pair: at('pair.pem'),
    record: at('running.json'),
    pid: at('pid'),
    lock: at('lock'),
    log: at('supervisor.log'),
  };
}
