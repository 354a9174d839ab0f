import type { Load } from '../load/load.ts';
import type { Spawned } from '../measure/spawned.ts';

/** Processes of one run, started once and used by all scenarios. */
export interface Stage {
  readonly adapter: string;
  readonly load: Load;
  /** The server under test. */
  readonly subject: Spawned;
  /** Bare `node:http`; durable when the adapter is. */
  readonly floor: Spawned;
  /** Starts another server, stopped with the run. Default: `insecure`, plain HTTP without access control. */
  readonly start: (extra: readonly string[], insecure?: boolean) => Promise<Spawned>;
  /**
   * Starts the fan-out of frames of that size: a C program, or a Node program where there is no compiler, with a remark
   * on that. `tls`: to connections with TLS.
   */
  readonly startWatchFloor: (
    frameBytes: number,
    tls?: boolean,
  ) => Promise<{ readonly floor: Spawned; readonly remark?: string }>;
  /** Another load process, stopped with the run. */
  readonly startLoad: () => Load;
  /** Starts any program that prints `ready PORT`. */
  readonly startProgram: (command: string, args: readonly string[]) => Promise<Spawned>;
  /** Duration of one slice in milliseconds. */
  readonly sliceMs: number;
  readonly rounds: number;
  /** Objects loaded into the subject before anything is measured. */
  readonly objects: number;
  /** Watchers of a fan-out. */
  readonly watchers: number;
  /** Events of one round of a fan-out. */
  readonly events: number;
  readonly progress: (text: string) => void;
}

/** One measured round: cost of one operation on both sides, in the same unit. */
export interface Round {
  readonly floor: number;
  readonly subject: number;
}

export interface Measurement {
  /** What one operation is. */
  readonly unit: string;
  readonly rounds: readonly Round[];
  /** Fewer good rounds are no verdict. Default five; less for what busy neighbours do not disturb. */
  readonly leastRounds?: number;
  /** Figures beside the rounds: latencies, bytes, counts. */
  readonly notes?: Readonly<Record<string, number>>;
  /** What a reader must know to judge the figure. */
  readonly remark?: string;
}

/**
 * How the figure is judged. `share`: floor cost divided by subject cost, at least `mark`. `times`: subject cost divided
 * by floor cost, at most `mark`.
 */
export interface Goal {
  readonly form: 'share' | 'times';
  readonly mark: number;
  /** The mark for adapters whose writes are on disk before they are answered; default `mark`. */
  readonly durableMark?: number;
}

export interface Scenario {
  readonly name: string;
  /** What is compared with what, in a sentence. */
  readonly what: string;
  readonly goal: Goal;
  /** Scenarios that say nothing new on a second adapter run on the first only. */
  readonly everyAdapter: boolean;
  run(stage: Stage): Promise<Measurement>;
}
