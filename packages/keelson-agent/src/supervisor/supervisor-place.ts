import { join } from 'node:path';

/** The files of a supervisor, all of them below the agent's root directory and their owner's alone. */
export interface SupervisorPlace {
  readonly folder: string;
  /** The key and certificate of both ends, PEM. */
  readonly pair: string;
  /** What runs now, and with which options. */
  readonly record: string;
  /** Its process id, for people. */
  readonly pid: string;
  /** Locked while it runs. */
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
