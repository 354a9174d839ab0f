export type { ControllerOptions } from './controller-options.ts';
export { GarbageCollector } from './garbage/garbage-collector.ts';
export { NamespaceController } from './namespace/namespace-controller.ts';
