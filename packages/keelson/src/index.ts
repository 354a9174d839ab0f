export * from '@keelson/core';
export { type ControlPlane, type ControlPlaneOptions, createControlPlane } from './control-plane/create-control-plane.ts';
export type { Listening, ListenOptions } from './server/listen-plane.ts';
