/** @experimental */
export type { SharedInformerOf } from './cluster/cluster-feed.ts';
/** @experimental */
export type { ClusterChange, ClusterState } from './cluster/cluster-state.ts';
/** @experimental */
export type { NodeInfo } from './cluster/node-info.ts';
/** @experimental */
export type { PodInfo } from './cluster/pod-info.ts';
/** @experimental */
export {
  type Filter,
  maxScore,
  type NodeCheck,
  type NodeRanking,
  nodeFilter,
  nodeScore,
  type PodRejection,
  type Rejection,
  type Score,
} from './plugins/plugin.ts';
/** @experimental */
export type { QueuedPod, QueueOrder } from './queue/scheduling-queue.ts';
/** @public */
export { defaultSchedulerName, Scheduler, type SchedulerOptions } from './scheduler.ts';
