// Entry point for tests of programs with a control plane in the process of the test.

/** @public */
export { eventually } from './eventually.ts';
/** @public */
export { startTestPlane, type TestPlane, type TestPlaneOptions } from './test-plane.ts';
