import type { ContainerId } from './container.ts';
import type { SandboxId } from './sandbox.ts';

/**
 * A change of a sandbox or container. An event is a hint: `containerStatus` and the lists contain the actual state.
 *
 * The first event of a stream is always `resync`. Every later change is reported, so a consumer lists once after
 * `resync`. The runtime sends `resync` again when events may have been lost. Events of one container are in order.
 */
export type RuntimeEvent =
  | { readonly type: 'resync'; readonly at: number }
  | {
      readonly type: 'containerCreated' | 'containerStarted' | 'containerExited' | 'containerRemoved';
      readonly containerId: ContainerId;
      readonly sandboxId: SandboxId;
      /** Epoch milliseconds. */
      readonly at: number;
    }
  | {
      readonly type: 'sandboxReady' | 'sandboxNotReady' | 'sandboxRemoved';
      readonly sandboxId: SandboxId;
      readonly at: number;
    };
