import { FakeClock } from '@keelson/core/runtime';
import { type ControlPlane, type ControlPlaneOptions, createControlPlane } from 'keelson';

export interface TestPlaneOptions extends Omit<ControlPlaneOptions, 'clock' | 'storage'> {
  /** Time moves only when `plane.clock.advance()` is called. Default: real time. */
  readonly fakeClock?: boolean;
}

/** A control plane in the test process. */
export interface TestPlane extends ControlPlane {
  /** Present when the plane was started with `fakeClock`. */
  readonly clock: FakeClock | undefined;
}

/** Starts a complete control plane on memory; close it at the end of the test (`await using` or `t.teardown`). */
export async function startTestPlane(options: TestPlaneOptions = {}): Promise<TestPlane> {
  const { fakeClock = false, ...rest } = options;
  const clock = fakeClock ? new FakeClock() : undefined;
  const plane = await createControlPlane({ ...rest, storage: 'memory:', ...(clock === undefined ? {} : { clock }) });
  return Object.assign(plane, { clock });
}
