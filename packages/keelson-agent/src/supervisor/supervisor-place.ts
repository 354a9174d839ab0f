import { join } from 'node:path';

/** The files of a supervisor, all below the agent's root directory and accessible to their owner only. */
export interface SupervisorPlace {
  readonly folder: string;
  /** Key and certificate of both ends, in PEM. */
  readonly pair: string;
  /** The running process and its options. */
  readonly record: string;
  /** Its process ID, for operators. */
  readonly pid: string;
  /** Locked while the supervisor runs. */
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
