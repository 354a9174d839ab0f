/** A pod that may be evicted. */
export interface Candidate {
  /** Of the scarce resource: bytes, or inodes. */
  readonly usage: number;
  /** What it asked for; inodes cannot be asked for. */
  readonly request: number;
  /** 0 without the gate PodPriority. */
  readonly priority: number;
}

/**
 * The order in which pods are evicted (agent.md B.8): those that use more than they asked for before the others, then the lower priority, then
 * the one that is further above what it asked for.
 */
export function byEviction(a: Candidate, b: Candidate): number {
  return Number(isOver(b)) - Number(isOver(a)) || a.priority - b.priority || excess(b) - excess(a);
}

function isOver({ usage, request }: Candidate): boolean {
  return usage > request;
}

function excess({ usage, request }: Candidate): number {
  return usage - request;
}
