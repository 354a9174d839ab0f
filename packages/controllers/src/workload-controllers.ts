import type { ControllerDefinition } from '@keelson/controller-kit';
import { autoscalerController } from './autoscaling/autoscaler-controller.ts';
import { cronJobController } from './cronjob/cron-job-controller.ts';
import { daemonSetController } from './daemonset/daemon-set-controller.ts';
import { deploymentController } from './deployment/deployment-controller.ts';
import { endpointSliceController } from './endpoints/endpoint-slice-controller.ts';
import { endpointSliceMirroring } from './endpoints/endpoint-slice-mirroring.ts';
import { endpointsController } from './endpoints/endpoints-controller.ts';
import { jobOrphanPods, ttlAfterFinishedController } from './job/finished-jobs.ts';
import { jobController } from './job/job-controller.ts';
import { nodeLifecycleController } from './node-lifecycle/node-lifecycle-controller.ts';
import { taintEvictionController } from './node-lifecycle/taint-eviction-controller.ts';
import { replicaSetController, replicationController } from './replicaset/replica-set-controller.ts';
import { statefulSetController } from './statefulset/stateful-set-controller.ts';
import { claimBinder } from './volumes/claim-binder.ts';
import { ephemeralClaims } from './volumes/ephemeral-claims.ts';
import { volumePhases } from './volumes/volume-phases.ts';

/** Controllers of workloads, services and nodes, in the order of their names. */
// biome-ignore lint/suspicious/noExplicitAny: controllers of kinds of every type
export const workloadControllers: readonly ControllerDefinition<any>[] = [
  cronJobController,
  daemonSetController,
  deploymentController,
  endpointSliceController,
  endpointSliceMirroring,
  endpointsController,
  ephemeralClaims,
  autoscalerController,
  jobController,
  jobOrphanPods,
  nodeLifecycleController,
  claimBinder,
  volumePhases,
  replicaSetController,
  replicationController,
  statefulSetController,
  taintEvictionController,
  ttlAfterFinishedController,
];
