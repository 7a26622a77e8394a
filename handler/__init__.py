"""The Lambda side: an event becomes a job, the job a child process, its end a result.

Reading order: app → event → job → script → submit → child → outcome → response.
"""
