//! Which environment variables a trace keeps.

/// Prefixes of variables that change how an MPI program performs.
const PREFIXES: [&str; 8] =
    ["SLURM_", "OMPI_MCA_", "PMIX_", "MPICH_", "UCX_", "FI_", "I_MPI_", "OMP_"];
/// Other variables that tell the batch job and how its launcher pins.
const NAMES: [&str; 20] = [
    "PBS_JOBID",
    "PBS_JOBNAME",
    "PBS_NUM_NODES",
    "PBS_NP",
    "LSB_JOBID",
    "LSB_JOBNAME",
    "LSB_HOSTS",
    "LSB_DJOB_NUMPROC",
    "JOB_ID",
    "JOB_NAME",
    "NHOSTS",
    "NSLOTS",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MPI_LOCALNRANKS",
    "PMI_SIZE",
    "PRTE_MCA_hwloc_default_binding_policy",
    "HYDRA_BINDING",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
];
/// Variables whose names end so are kept too.
const SUFFIX: &str = "_NUM_THREADS";
/// … unless the name contains one of these: `SLURM_JWT` is a password.
const SECRETS: [&str; 7] = ["JWT", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "_KEY"];

/// Whether a variable matters for performance and cannot be a secret, by its name.
pub fn is_kept(name: &str) -> bool {
    (PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.ends_with(SUFFIX)
        || NAMES.contains(&name))
        && !SECRETS.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::is_kept;

    #[test]
    fn passwords_stay_out() {
        assert!(is_kept("SLURM_JOB_ID") && is_kept("OPENBLAS_NUM_THREADS"));
        assert!(!is_kept("SLURM_JWT") && !is_kept("AWS_SECRET_ACCESS_KEY") && !is_kept("PATH"));
    }
}
