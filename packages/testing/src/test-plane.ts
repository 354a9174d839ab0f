import { type AnyController, ControllerManager } from '@keelson/controller-kit';
import { type Clock, FakeClock } from '@keelson/core/runtime';
import { type ControlPlane, type ControlPlaneOptions, createControlPlane } from 'keelson';

/** The options of a plane; `storage` may be any storage, by default one in memory. */
export interface TestPlaneOptions extends Omit<ControlPlaneOptions, 'clock'> {
  /** Time moves only when `plane.clock.advance()` is called. Default: real time. */
  readonly fakeClock?: boolean;
}

/** A control plane in the test process. */
export interface TestPlane<C extends Clock = Clock> extends ControlPlane {
  /** A `FakeClock` when the plane was started with `fakeClock`. */
  readonly clock: C;
  /** The test's own entries of the option `controllers`. One that modifies an object that it has read fails. */
  readonly controllers: ControllerManager;
}

/** Starts a complete control plane; close it at the end of the test (`await using` or `t.teardown`). */
export async function startTestPlane(
  options: TestPlaneOptions & { readonly fakeClock: true },
): Promise<TestPlane<FakeClock>>;
export async function startTestPlane(options?: TestPlaneOptions): Promise<TestPlane>;
export async function startTestPlane(options: TestPlaneOptions = {}): Promise<TestPlane> {
  const { fakeClock = false, controllers = true, ...rest } = options;
  const entries = typeof controllers === 'boolean' ? [] : controllers;
  const names = entries.filter((entry) => typeof entry === 'string');
  const plane = await createControlPlane({
    ...rest,
    controllers: typeof controllers === 'boolean' ? controllers : names,
    ...(fakeClock ? { clock: new FakeClock() } : {}),
  });
  const { clock, logger, metrics } = plane;
  const manager = new ControllerManager({
    client: plane.api,
    ...{ clock, logger, metrics },
    freeze: true,
    controllers: entries.filter((entry): entry is AnyController => typeof entry !== 'string'),
  });
  await manager.start();
  const closePlane = plane.close;
  const close = async () => {
    await manager.stop();
    await closePlane();
  };
  return Object.assign(plane, { controllers: manager, close, [Symbol.asyncDispose]: close });
}
