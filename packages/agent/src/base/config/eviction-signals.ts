/** A resource of the node that thresholds protect. */
export type ScarceResource = 'memory' | 'nodefs' | 'nodefsInodes' | 'imagefs' | 'imagefsInodes';

/** Condition of the node that reports the shortage of a resource. */
export type PressureCondition = 'MemoryPressure' | 'DiskPressure';

export interface SignalTraits {
  readonly resource: ScarceResource;
  readonly condition: PressureCondition;
}

const traits = {
  'memory.available': { resource: 'memory', condition: 'MemoryPressure' },
  'allocatableMemory.available': { resource: 'memory', condition: 'MemoryPressure' },
  'nodefs.available': { resource: 'nodefs', condition: 'DiskPressure' },
  'nodefs.inodesFree': { resource: 'nodefsInodes', condition: 'DiskPressure' },
  'imagefs.available': { resource: 'imagefs', condition: 'DiskPressure' },
  'imagefs.inodesFree': { resource: 'imagefsInodes', condition: 'DiskPressure' },
} as const satisfies Readonly<Record<string, SignalTraits>>;

/** An observed amount that thresholds refer to: see docs/reference/agent-rules.md#eviction. */
export type Signal = keyof typeof traits;

/** In order of priority: memory before disks. */
export const signals: readonly Signal[] = Object.keys(traits) as Signal[];

export function isSignal(word: string): word is Signal {
  return Object.hasOwn(traits, word);
}

export function traitsOf(signal: Signal): SignalTraits {
  return traits[signal];
}

/** True for numbers of inodes; false for bytes. */
export function countsInodes(resource: ScarceResource): boolean {
  return resource === 'nodefsInodes' || resource === 'imagefsInodes';
}
