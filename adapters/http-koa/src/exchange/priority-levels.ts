import type { FlowControlOptions, PriorityLevel } from './flow-options.ts';

/** The built-in priority levels: those of kube-apiserver, with its shares. */
export const defaultLevels: readonly PriorityLevel[] = [
  { name: 'leader-election', shares: 10 },
  { name: 'system', shares: 30 },
  { name: 'workload-high', shares: 40 },
  { name: 'workload-low', shares: 100 },
  { name: 'global-default', shares: 20 },
  { name: 'catch-all', shares: 5 },
];

export const watchFlow = 'watch';
export const connectFlow = 'connect';

/** What an admitted request occupies until it ends. Owned by `FlowControl`. */
export interface Seat {
  readonly kind: 'read' | 'mutate' | typeof watchFlow | typeof connectFlow;
  readonly user: string;
  /** Undefined for requests that no priority level limits. */
  readonly flow: Flow | undefined;
}

/** The requests of one caller within a level. */
export interface Flow {
  readonly level: Level;
  readonly key: string;
  running: number;
  readonly waiting: Waiting[];
}

export interface Waiting {
  readonly seat: Seat;
  readonly since: number;
  /** Ends the wait of the request, with undefined when the request is rejected. */
  readonly resolve: (seat: Seat | undefined) => void;
  readonly cancelTimer: () => void;
}

/** The state of a priority level. */
export class Level {
  readonly name: string;
  /** Nominal number of seats of the level. */
  seats = 0;
  /** Number of seats that are not lent to other levels. */
  kept = 0;
  /** Maximum number of seats with those of other levels. */
  maxSeats = 0;
  /** Maximum number of waiting requests of a flow, and of the level. */
  queueLength = 0;
  levelQueueLength = 0;
  /** True for a level that has been removed while requests of it run or wait. */
  removed = false;
  readonly flows = new Map<string, Flow>();
  /** Flows with waiting requests, in the order of their turns. */
  readonly turns: Flow[] = [];
  running = 0;
  queued = 0;

  constructor(name: string) {
    this.name = name;
  }

  configure(level: PriorityLevel, seats: number, defaults: FlowControlOptions): void {
    this.seats = seats;
    this.kept = keptSeats(level, seats);
    const { borrowingLimitPercent: limit } = level;
    this.maxSeats = limit === undefined ? Number.POSITIVE_INFINITY : seats + Math.round((seats * limit) / 100);
    this.queueLength = level.queueLength ?? defaults.queueLength;
    this.levelQueueLength = level.levelQueueLength ?? defaults.levelQueueLength;
    this.removed = false;
  }

  get reserved(): number {
    return Math.max(0, this.kept - this.running);
  }

  flow(key: string): Flow {
    let found = this.flows.get(key);
    if (found === undefined) {
      found = { level: this, key, running: 0, waiting: [] };
      this.flows.set(key, found);
    }
    return found;
  }
}

/** Number of seats that a level does not lend. */
export function keptSeats({ lendablePercent = 50 }: PriorityLevel, seats: number): number {
  return Math.ceil((seats * (100 - lendablePercent)) / 100);
}
