export { eventually } from './eventually.ts';
export { startTestPlane, type TestPlane, type TestPlaneOptions } from './test-plane.ts';
