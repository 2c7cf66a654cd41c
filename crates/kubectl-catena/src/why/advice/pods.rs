//! Reasons that concern pods, their nodes and their volumes.

use super::Description;

/// Reasons of a kubelet or a scheduler.
pub fn pod(reason: &str) -> Option<Description> {
    Some(match reason {
        "ImagePullBackOff"
        | "ErrImagePull"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "RegistryUnavailable" => (
            "cannot pull its image",
            "correct the image (for a BasicDeployment in spec.parameters), or the pull secret in the pod template",
        ),
        "CrashLoopBackOff" => (
            "has a container that exits again and again",
            "read the logs of its last run: kubectl{namespace} logs {name} --previous",
        ),
        "Error" | "ContainerCannotRun" | "StartError" | "RunContainerError" | "PodFailed" => {
            ("has a container that failed", "read its logs: kubectl{namespace} logs {name}")
        }
        "RunsAsRoot" => (
            "has an image that runs as root, which its security context forbids",
            "use an image that runs as another user, or set runAsUser in the security context of the pod template",
        ),
        "OOMKilled" => ("exceeded its memory limit", "raise the memory limit, or reduce the memory usage"),
        "CreateContainerConfigError" | "CreateContainerError" => (
            "has a container that cannot be created",
            "create the ConfigMap, Secret or key that the message names",
        ),
        "Unschedulable" | "SchedulerError" => (
            "fits on no node",
            "request less CPU or memory, change the node selector, or add a node; the message lists the obstacles",
        ),
        "SchedulingGated" => (
            "is held back by a scheduling gate",
            "find the controller that removes it from spec.schedulingGates",
        ),
        "NodeNotReady" => (
            "is on a node that is not ready",
            "have the node that the message names repaired; once it is gone for good, its Node object has to be deleted, and its pods are replaced",
        ),
        "NodeGone" => (
            "was on a node that no longer exists",
            "wait for the garbage collector of pods, which removes it within a minute or two, or delete it: kubectl{namespace} delete pod {name} --force",
        ),
        "Evicted" | "Preempting" | "NodeLost" | "NodeShutdown" => (
            "was removed from its node",
            "wait for its replacement; if this happens again, see the conditions of the node",
        ),
        "PodSucceeded" => (
            "completed, although it should continue to serve",
            "run a program that does not exit, or use a Job",
        ),
        "Starting" | "ContainerCreating" | "PodInitializing" => (
            "is starting",
            "wait; if this takes long, see its volumes and init containers: kubectl{namespace} describe {object}",
        ),
        "NotReady" | "ContainersNotReady" => (
            "is running, but not ready",
            "find out why its readiness probe fails: kubectl{namespace} describe {object}, and its logs",
        ),
        _ => return None,
    })
}

/// Reasons that concern volumes.
pub fn volume(reason: &str) -> Option<Description> {
    Some(match reason {
        "ClaimMissing" => {
            ("does not exist", "create the PersistentVolumeClaim, or correct its name in the pod template")
        }
        "ClaimWithoutClass" => (
            "is not bound",
            "create the claim again with a storageClassName (kubectl get storageclasses lists them), or make a PersistentVolume that fits",
        ),
        "ClassMissing" => (
            "does not exist",
            "create the StorageClass, or create the claim again with one that kubectl get storageclasses lists",
        ),
        "VolumeLost" => (
            "has lost its volume",
            "create the PersistentVolume again if its disk still exists, or delete the claim and restore its data into a new claim of the same name",
        ),
        "NoVolumeFits" => {
            ("is not bound", "create a PersistentVolume of this class, with its size and access modes")
        }
        "WaitsForPod" => ("is not bound", "create a pod that uses it; nothing blocks it"),
        "NotProvisioned" => (
            "is not bound",
            "check that the provisioner of the class is running, and read its logs: kubectl{namespace} describe {object}",
        ),
        _ => return None,
    })
}
