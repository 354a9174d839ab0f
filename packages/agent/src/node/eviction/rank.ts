/** A pod that may be evicted. */
export interface Candidate {
  /** Usage of the scarce resource, in bytes or inodes. */
  readonly usage: number;
  /** The request; 0 for inodes, which have no requests. */
  readonly request: number;
  /** 0 without the gate PodPriority. */
  readonly priority: number;
}

/** Compares pods by the order in which they are evicted: see docs/reference/agent-rules.md#eviction. */
export function byEviction(a: Candidate, b: Candidate): number {
  return Number(isOver(b)) - Number(isOver(a)) || a.priority - b.priority || excess(b) - excess(a);
}

function isOver({ usage, request }: Candidate): boolean {
  return usage > request;
}

function excess({ usage, request }: Candidate): number {
  return usage - request;
}
