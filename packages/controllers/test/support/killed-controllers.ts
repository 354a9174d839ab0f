import { interceptedClient } from './intercepted-client.ts';
import type { Random } from './random.ts';
import type { WorkloadPlane } from './workload-plane.ts';

/**
 * Starts the controllers and lets them run until a random write, which fails as all later ones do. Half of the kills
 * happen when the write was made but its answer was not received. Ends also when nothing remains to be written.
 */
export async function runUntilKilled(
  workloads: WorkloadPlane,
  random: Random,
  isComplete: () => Promise<boolean>,
): Promise<void> {
  let remaining = random.below(6);
  const lost = random.below(2) === 1;
  let dead = false;
  const fuse = (isAnswer: boolean) => () => {
    if (!dead && isAnswer === lost) remaining -= 1;
    if (remaining >= 0) return;
    // After its death a process makes no further write.
    if (dead && isAnswer) return;
    dead = true;
    throw new Error('the process was killed');
  };
  await workloads.startControllers((client) => interceptedClient(client, { before: fuse(false), after: fuse(true) }));
  while (!dead && !(await isComplete())) {
    workloads.clock.advance(20);
    await new Promise((next) => setTimeout(next, 1));
  }
}
