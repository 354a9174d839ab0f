import { type AnyController, ControllerManager } from '@keelson/controller-kit';
import { FakeClock, noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { type ControlPlane, type ControlPlaneOptions, createControlPlane } from 'keelson';

export interface TestPlaneOptions extends Omit<ControlPlaneOptions, 'clock' | 'storage'> {
  /** Time moves only when `plane.clock.advance()` is called. Default: real time. */
  readonly fakeClock?: boolean;
}

/** A control plane in the test process. */
export interface TestPlane extends ControlPlane {
  /** Present when the plane was started with `fakeClock`. */
  readonly clock: FakeClock | undefined;
  /** The test's own entries of the option `controllers`. One that modifies an object that it has read fails. */
  readonly controllers: ControllerManager;
}

/** Starts a complete control plane on memory; close it at the end of the test (`await using` or `t.teardown`). */
export async function startTestPlane(options: TestPlaneOptions = {}): Promise<TestPlane> {
  const { fakeClock = false, controllers = true, ...rest } = options;
  const clock = fakeClock ? new FakeClock() : undefined;
  const entries = typeof controllers === 'boolean' ? [] : controllers;
  const names = entries.filter((entry) => typeof entry === 'string');
  const plane = await createControlPlane({
    ...rest,
    storage: 'memory:',
    controllers: typeof controllers === 'boolean' ? controllers : names,
    ...(clock === undefined ? {} : { clock }),
  });
  const manager = new ControllerManager({
    client: plane.api,
    clock: clock ?? systemClock,
    logger: options.logger ?? silentLogger,
    metrics: options.metrics ?? noMetrics,
    freeze: true,
    controllers: entries.filter((entry): entry is AnyController => typeof entry !== 'string'),
  });
  await manager.start();
  const closePlane = plane.close;
  const close = async () => {
    await manager.stop();
    await closePlane();
  };
  return Object.assign(plane, { clock, controllers: manager, close, [Symbol.asyncDispose]: close });
}
