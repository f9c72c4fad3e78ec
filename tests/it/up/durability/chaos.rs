use super::kill_under_load;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: kills all processes ten times"]
async fn keeps_every_accepted_mail_when_all_processes_are_killed_ten_times() {
    kill_under_load(10).await;
}
