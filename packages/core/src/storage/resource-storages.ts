import type { KindDefinition } from '../kind/kind-definition.ts';
import type { ResourceStorage } from './resource-storage.ts';

/** The storage of every kind on one store. Direct and cached storages behave equally. */
export interface ResourceStorages {
  /** Kinds that share their storage get the same objects. Constant time; opens nothing before its first use. */
  forKind(kind: KindDefinition): ResourceStorage;
  /** False while reads may hang or be stale without bound: before `start`, and while the store cannot be followed. */
  ready(): boolean;
  /** The store must be open. */
  start(): Promise<void>;
  /** Ends every watch with `Closed`; the store stays open. Idempotent. */
  stop(): Promise<void>;
}
