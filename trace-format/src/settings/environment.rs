//! The environment variables that a trace keeps.
//!
//! This is a list of known names, because a list of exclusions would always miss a password under a
//! name that nobody thought of. The listed variables affect the program's performance or identify
//! the batch job.

/// Individual variables.
const NAMES: [&str; 154] = [
    // OpenMP, its runtimes, and other causes of threads.
    "OMP_DISPLAY_AFFINITY",
    "OMP_DYNAMIC",
    "OMP_MAX_ACTIVE_LEVELS",
    "OMP_NESTED",
    "OMP_NUM_TEAMS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OMP_STACKSIZE",
    "OMP_TARGET_OFFLOAD",
    "OMP_TEAMS_THREAD_LIMIT",
    "OMP_THREAD_LIMIT",
    "OMP_WAIT_POLICY",
    "GOMP_CPU_AFFINITY",
    "GOMP_SPINCOUNT",
    "GOMP_STACKSIZE",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "KMP_HW_SUBSET",
    "KMP_LIBRARY",
    "KMP_STACKSIZE",
    "MKL_DYNAMIC",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_INTERFACE_LAYER",
    "MKL_THREADING_LAYER",
    "OPENBLAS_CORETYPE",
    "VECLIB_MAXIMUM_THREADS",
    // Memory allocation of the C library.
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    // Slurm.
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_COUNT",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_CLUSTER_NAME",
    "SLURM_CORE_SPEC",
    "SLURM_CPUS_ON_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_CPU_BIND",
    "SLURM_CPU_BIND_LIST",
    "SLURM_CPU_BIND_TYPE",
    "SLURM_CPU_BIND_VERBOSE",
    "SLURM_CPU_FREQ_REQ",
    "SLURM_DIST_PLANESIZE",
    "SLURM_DISTRIBUTION",
    "SLURM_EXCLUSIVE",
    "SLURM_GPUS_ON_NODE",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_TASK",
    "SLURM_GPU_BIND",
    "SLURM_HINT",
    "SLURM_JOBID",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_ID",
    "SLURM_JOB_NAME",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_QOS",
    "SLURM_MEM_BIND",
    "SLURM_MEM_BIND_TYPE",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_MPI_TYPE",
    "SLURM_NETWORK",
    "SLURM_NNODES",
    "SLURM_NODELIST",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_SOCKET",
    "SLURM_OVERCOMMIT",
    "SLURM_STEP_ID",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_SWITCHES",
    "SLURM_TASKS_PER_NODE",
    "SLURM_THREADS_PER_CORE",
    "SLURM_TOPOLOGY_ADDR",
    // Other batch systems.
    "PBS_JOBID",
    "PBS_JOBNAME",
    "PBS_NUM_NODES",
    "PBS_NUM_PPN",
    "PBS_NP",
    "PBS_QUEUE",
    "LSB_JOBID",
    "LSB_JOBNAME",
    "LSB_HOSTS",
    "LSB_DJOB_NUMPROC",
    "LSB_QUEUE",
    "JOB_ID",
    "JOB_NAME",
    "NHOSTS",
    "NSLOTS",
    "QUEUE",
    // Numbers of ranks, set by launchers.
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MPI_LOCALNRANKS",
    "PMI_SIZE",
    "HYDRA_BINDING",
    "PRTE_MCA_hwloc_default_binding_policy",
    "PRTE_MCA_rmaps_default_mapping_policy",
    // MPICH and its derivatives.
    "MPICH_ASYNC_PROGRESS",
    "MPICH_CPUMASK_DISPLAY",
    "MPICH_GPU_SUPPORT_ENABLED",
    "MPICH_MAX_THREAD_SAFETY",
    "MPICH_MPIIO_HINTS_DISPLAY",
    "MPICH_NEMESIS_NETMOD",
    "MPICH_OFI_NIC_POLICY",
    "MPICH_OFI_NUM_NICS",
    "MPICH_RANK_REORDER_METHOD",
    "MPICH_SMP_SINGLE_COPY_MODE",
    // Intel MPI.
    "I_MPI_ASYNC_PROGRESS",
    "I_MPI_ASYNC_PROGRESS_PIN",
    "I_MPI_EAGER_THRESHOLD",
    "I_MPI_EXTRA_FILESYSTEM",
    "I_MPI_FABRICS",
    "I_MPI_INTRANODE_EAGER_THRESHOLD",
    "I_MPI_OFFLOAD",
    "I_MPI_OFI_PROVIDER",
    "I_MPI_PERHOST",
    "I_MPI_PIN",
    "I_MPI_PIN_CELL",
    "I_MPI_PIN_DOMAIN",
    "I_MPI_PIN_ORDER",
    "I_MPI_PIN_PROCESSOR_LIST",
    "I_MPI_PMI",
    "I_MPI_SHM",
    "I_MPI_SPIN_COUNT",
    "I_MPI_THREAD_SPLIT",
    "I_MPI_WAIT_MODE",
    // UCX.
    "UCX_IB_GID_INDEX",
    "UCX_IB_SL",
    "UCX_MAX_EAGER_RAILS",
    "UCX_MAX_RNDV_RAILS",
    "UCX_NET_DEVICES",
    "UCX_RNDV_SCHEME",
    "UCX_RNDV_THRESH",
    "UCX_SHM_DEVICES",
    "UCX_TLS",
    "UCX_ZCOPY_THRESH",
    // libfabric.
    "FI_CXI_DEFAULT_CQ_SIZE",
    "FI_CXI_RDZV_THRESHOLD",
    "FI_CXI_RX_MATCH_MODE",
    "FI_EFA_USE_DEVICE_RDMA",
    "FI_MR_CACHE_MAX_COUNT",
    "FI_MR_CACHE_MAX_SIZE",
    "FI_MR_CACHE_MONITOR",
    "FI_OFI_RXM_BUFFER_SIZE",
    "FI_OFI_RXM_USE_SRX",
    "FI_PROVIDER",
    "FI_UNIVERSE_SIZE",
];

/// Prefixes of some hundred variables that all choose algorithms, limits and transports (`ompi_info
/// --all` and `impi_info -v all` list them).
const FAMILIES: [&str; 13] = [
    "OMPI_MCA_bml_",
    "OMPI_MCA_btl_",
    "OMPI_MCA_coll_",
    "OMPI_MCA_fcoll_",
    "OMPI_MCA_hwloc_base_",
    "OMPI_MCA_io_",
    "OMPI_MCA_mtl_",
    "OMPI_MCA_osc_",
    "OMPI_MCA_pml_",
    "OMPI_MCA_rmaps_",
    "MPIR_CVAR_",
    "I_MPI_ADJUST_",
    "MPICH_COLL_",
];
/// Open MPI's selection of components.
const COMPONENTS: [&str; 8] = [
    "OMPI_MCA_bml",
    "OMPI_MCA_btl",
    "OMPI_MCA_coll",
    "OMPI_MCA_fcoll",
    "OMPI_MCA_io",
    "OMPI_MCA_mtl",
    "OMPI_MCA_osc",
    "OMPI_MCA_pml",
];
/// Suffix of variables that set a number of threads in any library.
const THREADS: &str = "_NUM_THREADS";
/// A variable of these families is excluded if its name contains one of these words, in upper or
/// lower case.
const SECRETS: [&str; 9] =
    ["AUTH", "CREDENTIAL", "JWT", "KEY", "PASS", "PRIVATE", "PWD", "SECRET", "TOKEN"];

/// Whether a variable is known to affect performance or to identify the batch job.
pub fn is_kept(name: &str) -> bool {
    let of_family =
        FAMILIES.iter().any(|family| name.starts_with(family)) || name.ends_with(THREADS);
    NAMES.contains(&name)
        || COMPONENTS.contains(&name)
        || of_family && {
            let upper = name.to_ascii_uppercase();
            !SECRETS.iter().any(|secret| upper.contains(secret))
        }
}

#[cfg(test)]
mod tests {
    use super::is_kept;

    #[test]
    fn keeps_relevant_variables() {
        for name in [
            "SLURM_JOB_ID",
            "SLURM_CPU_BIND",
            "OPENBLAS_NUM_THREADS",
            "OMP_PROC_BIND",
            "OMPI_MCA_btl",
            "OMPI_MCA_coll_tuned_bcast_algorithm",
            "I_MPI_ADJUST_BCAST",
            "UCX_TLS",
            "FI_PROVIDER",
        ] {
            assert!(is_kept(name), "{name}");
        }
    }

    #[test]
    fn excludes_unknown_variables() {
        for name in [
            "PATH",
            "SLURM_JWT",
            "SLURM_SPANK_OPT_registry_password",
            "SLURM_SPANK_JOB_TOKEN",
            "SLURM_EXPORT_ENV",
            "UCX_PASS",
            "UCX_TLS_PWD",
            "FI_AUTHKEY",
            "FI_OPX_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "OMPI_MCA_mca_base_env_list",
            "OMPI_MCA_orte_hnp_uri",
            "OMPI_MCA_btl_vendor_auth_key",
            "OMPI_MCA_io_Password",
            "OMPI_MCA_btl_mytoken",
            "mypasswd_NUM_THREADS",
            "PMIX_SERVER_URI41",
            "PMIX_MCA_psec",
            "MPICH_SOMETHING_NEW",
            "OMP_SOMETHING_NEW",
            "omp_num_threads",
            "MY_SECRET_NUM_THREADS",
        ] {
            assert!(!is_kept(name), "{name}");
        }
    }
}
