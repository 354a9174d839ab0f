import type { ContainerId } from './container.ts';
import type { SandboxId } from './sandbox.ts';

/**
 * That something changed. An event is a hint: what is true is what `containerStatus` and the lists say.
 *
 * The first event of a stream is always `resync`: from then on no change goes unreported, so a consumer lists when it
 * sees one, both then and whenever the runtime sends it again because events may have been lost. Events of one
 * container come in order.
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
