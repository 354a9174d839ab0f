export * from '@keelson/core';
export type {
  AdapterChoice,
  HistoryChoice,
  HistoryWindow,
  ReadMode,
  StorageChoice,
  StorageRoute,
  StorageRouting,
  StoreChoice,
  StoreSettings,
  UrlChoice,
} from './config/storage-choice.ts';
export { type ControlPlane, type ControlPlaneOptions, createControlPlane } from './control-plane/create-control-plane.ts';
export type { Listening, ListenOptions } from './server/listen-plane.ts';
